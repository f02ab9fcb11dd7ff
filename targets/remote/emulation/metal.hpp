// The words of the Metal Shading Language that kernels use, on top of simt.hpp: SIMD-groups of 32.
// Floating constants are float (-fsingle-precision-constant): Metal has no double.
#pragma once
#include <array>
#include <bit>
#include <concepts>
#include <limits>
#define KF_IN __attribute__((always_inline, artificial)) inline
#define KF_SHARED(name) \
  static void* kf_m_##name; \
  kf_t_##name& name = *(kf_t_##name*)kf::shared_array(&kf_m_##name, sizeof(kf_t_##name), kf::grain_of<kf_t_##name>());
#define __METAL__ 1
#define __METAL_VERSION__ 310

namespace kf {
template <typename T> constexpr size_t grain_of() {
  const size_t n = sizeof(std::remove_all_extents_t<T>);
  return n == 1 || n == 2 ? n : 4;
}
// Metal's SIMD functions are of the threads that come to them: whoever is elsewhere has no part.
KF_RT static void gather(int line) {
  self->state = AT_WARP;
  self->mask = 0;
  self->line = self->last_line = line;
  yield();
}
template <typename T> KF_RT static void offer(const T& value, int line) {
  static_assert(sizeof(T) <= 16, "a value of at most 16 bytes");
  std::memcpy(warp_slots[self->index], &value, sizeof(T));
  gather(line);
}
KF_RT static bool here(int lane) { return lane >= 0 && lane < now->warp && (self->active >> lane & 1); }
template <typename T> KF_RT static T offered(int lane) {  // undefined where nobody is: poison
  T x;
  if (here(lane)) std::memcpy(&x, warp_slots[self->warp * now->warp + lane], sizeof(T));
  else std::memset((void*)&x, 0xff, sizeof(T));
  return x;
}
template <typename T> KF_RT static T from_lane(T v, int lane, int line) {
  offer(v, line);
  const T x = offered<T>(lane);
  gather(line);
  return x;
}
template <typename T> KF_RT static T from_lane_or(T v, int lane, T other, int line) {
  offer(v, line);
  const T x = lane >= 0 && lane < now->warp ? offered<T>(lane) : other;
  gather(line);
  return x;
}
// Over the lanes of [0, end) that are here, in order; `start` where there is none.
template <typename T, typename F> KF_RT static T fold(T v, T start, int end, F f, int line) {
  offer(v, line);
  T sum = start;
  bool any = false;
  for (int k = 0; k < end; ++k) {
    if (!here(k)) continue;
    sum = any ? f(sum, offered<T>(k)) : offered<T>(k);
    any = true;
  }
  gather(line);
  return sum;
}
KF_RT static unsigned ballot(bool yes, int line) {
  offer(yes, line);
  unsigned found = 0;
  for (int k = 0; k < 32; ++k) found |= here(k) && offered<bool>(k) ? 1u << k : 0u;
  gather(line);
  return found;
}
KF_RT static int lane() { return self->lane; }
KF_RT static int width() { return now->warp; }
KF_RT static void simd_meet(int line, int fence) {
  gather(line);
  self->warp_step += fence != 0;
}
template <typename T, typename F> KF_RT static T atomic_do(T* p, F f, int line) {
  pinned_line = line;
  touch_atomic(p, sizeof(T));
  pinned_line = 0;
  const T old = *p;
  *p = f(old);
  return old;
}
KF_RT static void device_fence() { ++fences; }
}  // namespace kf

namespace kf_user {
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef _Float16 half;
struct bfloat {
  unsigned short v;
  bfloat() = default;
  KF_IN bfloat(float x) {
    const unsigned i = std::bit_cast<unsigned>(x);
    v = x != x ? 0x7fff : (unsigned short)((i + 0x7fff + (i >> 16 & 1)) >> 16);
  }
  KF_IN operator float() const { return std::bit_cast<float>((unsigned)v << 16); }
  KF_IN bfloat& operator+=(float o) { return *this = bfloat((float)*this + o); }
  KF_IN bfloat& operator-=(float o) { return *this = bfloat((float)*this - o); }
  KF_IN bfloat& operator*=(float o) { return *this = bfloat((float)*this * o); }
  KF_IN bfloat& operator/=(float o) { return *this = bfloat((float)*this / o); }
};
template <typename T> concept KfReal = std::is_same_v<T, float> || std::is_same_v<T, half> || std::is_same_v<T, bfloat>;
template <typename T> concept KfScalar = KfReal<T> || std::is_integral_v<T>;
template <typename T> concept KfInteger = std::is_integral_v<T>;

// --- vectors -------------------------------------------------------------------------------------
template <int... I> struct kf_at {};
template <typename T, int N> struct vec;
#define KF_VEC_COMMON(N)                                                                                   \
  vec() = default;                                                                                         \
  template <typename U> KF_IN explicit vec(vec<U, N> o) { for (int i = 0; i < N; ++i) e[i] = (T)o.e[i]; }  \
  KF_IN T& operator[](int i) { return e[i]; }                                                              \
  KF_IN const T& operator[](int i) const { return e[i]; }                                                  \
  template <int... I> KF_IN vec<T, sizeof...(I)> kf_swizzle(kf_at<I...>) const { return {e[I]...}; }       \
  KF_IN vec& operator+=(vec o) { return *this = *this + o; }                                               \
  KF_IN vec& operator-=(vec o) { return *this = *this - o; }                                               \
  KF_IN vec& operator*=(vec o) { return *this = *this * o; }                                               \
  KF_IN vec& operator/=(vec o) { return *this = *this / o; }                                               \
  KF_IN vec& operator%=(vec o) { return *this = *this % o; }                                               \
  KF_IN vec& operator&=(vec o) { return *this = *this & o; }                                               \
  KF_IN vec& operator|=(vec o) { return *this = *this | o; }                                               \
  KF_IN vec& operator^=(vec o) { return *this = *this ^ o; }
template <typename T> struct alignas(2 * sizeof(T)) vec<T, 2> {
  union { struct { T x, y; }; struct { T r, g; }; T e[2]; };
  KF_IN vec(T s) { e[0] = s; e[1] = s; }
  KF_IN vec(T a, T b) { e[0] = a; e[1] = b; }
  KF_VEC_COMMON(2)
};
template <typename T> struct alignas(4 * sizeof(T)) vec<T, 3> {
  union { struct { T x, y, z; }; struct { T r, g, b; }; T e[3]; };
  KF_IN vec(T s) { e[0] = s; e[1] = s; e[2] = s; }
  KF_IN vec(T a, T b, T c) { e[0] = a; e[1] = b; e[2] = c; }
  KF_IN vec(vec<T, 2> a, T b) : vec(a.e[0], a.e[1], b) {}
  KF_IN vec(T a, vec<T, 2> b) : vec(a, b.e[0], b.e[1]) {}
  KF_VEC_COMMON(3)
};
template <typename T> struct alignas(4 * sizeof(T)) vec<T, 4> {
  union { struct { T x, y, z, w; }; struct { T r, g, b, a; }; T e[4]; };
  KF_IN vec(T s) { e[0] = s; e[1] = s; e[2] = s; e[3] = s; }
  KF_IN vec(T a, T b, T c, T d) { e[0] = a; e[1] = b; e[2] = c; e[3] = d; }
  KF_IN vec(vec<T, 2> a, vec<T, 2> b) : vec(a.e[0], a.e[1], b.e[0], b.e[1]) {}
  KF_IN vec(vec<T, 2> a, T b, T c) : vec(a.e[0], a.e[1], b, c) {}
  KF_IN vec(T a, T b, vec<T, 2> c) : vec(a, b, c.e[0], c.e[1]) {}
  KF_IN vec(T a, vec<T, 2> b, T c) : vec(a, b.e[0], b.e[1], c) {}
  KF_IN vec(vec<T, 3> a, T b) : vec(a.e[0], a.e[1], a.e[2], b) {}
  KF_IN vec(T a, vec<T, 3> b) : vec(a, b.e[0], b.e[1], b.e[2]) {}
  KF_VEC_COMMON(4)
};
template <typename T> struct kf_packed3 {
  T x, y, z;
  kf_packed3() = default;
  KF_IN kf_packed3(T a, T b, T c) : x(a), y(b), z(c) {}
  KF_IN kf_packed3(vec<T, 3> v) : x(v.e[0]), y(v.e[1]), z(v.e[2]) {}
  KF_IN operator vec<T, 3>() const { return {x, y, z}; }
  KF_IN T& operator[](int i) { return (&x)[i]; }
};
#define KF_NAMES(T, n) typedef vec<T, 2> n##2; typedef vec<T, 3> n##3; typedef vec<T, 4> n##4;
KF_NAMES(float, float) KF_NAMES(half, half) KF_NAMES(bfloat, bfloat) KF_NAMES(bool, bool)
KF_NAMES(char, char) KF_NAMES(uchar, uchar) KF_NAMES(short, short) KF_NAMES(ushort, ushort)
KF_NAMES(int, int) KF_NAMES(uint, uint) KF_NAMES(long, long) KF_NAMES(ulong, ulong)
typedef kf_packed3<float> packed_float3;
typedef kf_packed3<half> packed_half3;
typedef kf_packed3<int> packed_int3;
typedef kf_packed3<uint> packed_uint3;
#define KF_EACH(N, R, expression) vec<R, N> o; for (int i = 0; i < N; ++i) o.e[i] = (R)(expression); return o;
#define KF_OPERATOR(op)                                                                                                                        \
  template <typename T, int N> KF_IN vec<T, N> operator op(vec<T, N> a, std::type_identity_t<vec<T, N>> b) { KF_EACH(N, T, a.e[i] op b.e[i]) } \
  template <typename T, int N> KF_IN vec<T, N> operator op(std::type_identity_t<T> a, vec<T, N> b) { KF_EACH(N, T, a op b.e[i]) }
KF_OPERATOR(+) KF_OPERATOR(-) KF_OPERATOR(*) KF_OPERATOR(/) KF_OPERATOR(%) KF_OPERATOR(&) KF_OPERATOR(|) KF_OPERATOR(^) KF_OPERATOR(<<) KF_OPERATOR(>>)
#define KF_COMPARISON(op)                                                                                                                            \
  template <typename T, int N> KF_IN vec<bool, N> operator op(vec<T, N> a, std::type_identity_t<vec<T, N>> b) { KF_EACH(N, bool, a.e[i] op b.e[i]) } \
  template <typename T, int N> KF_IN vec<bool, N> operator op(std::type_identity_t<T> a, vec<T, N> b) { KF_EACH(N, bool, a op b.e[i]) }
KF_COMPARISON(<) KF_COMPARISON(>) KF_COMPARISON(<=) KF_COMPARISON(>=) KF_COMPARISON(==) KF_COMPARISON(!=)
KF_COMPARISON(&&) KF_COMPARISON(||)
template <typename T, int N> KF_IN vec<T, N> operator-(vec<T, N> a) { KF_EACH(N, T, -a.e[i]) }
template <typename T, int N> KF_IN vec<T, N> operator+(vec<T, N> a) { return a; }
template <typename T, int N> KF_IN vec<T, N> operator~(vec<T, N> a) { KF_EACH(N, T, ~a.e[i]) }
template <typename T, int N> KF_IN vec<bool, N> operator!(vec<T, N> a) { KF_EACH(N, bool, !a.e[i]) }
template <typename T, typename S> KF_IN T as_type(S s) {
  static_assert(sizeof(T) == sizeof(S), "as_type keeps the size");
  T t;
  __builtin_memcpy((void*)&t, (const void*)&s, sizeof t);
  return t;
}

// --- what the launch gives a kernel --------------------------------------------------------------
struct KfIndex {  // three numbers that become what the parameter is
  unsigned x, y, z;
  template <KfInteger T> KF_RT operator T() const { return (T)x; }
  template <KfInteger T> KF_RT operator vec<T, 2>() const { vec<T, 2> v; v.e[0] = (T)x; v.e[1] = (T)y; return v; }
  template <KfInteger T> KF_RT operator vec<T, 3>() const { vec<T, 3> v; v.e[0] = (T)x; v.e[1] = (T)y; v.e[2] = (T)z; return v; }
};
struct KfPointer {
  void* at;
  template <typename T> KF_RT operator T*() const { return (T*)at; }
  template <typename T> KF_RT operator T&() const { return *(T*)at; }
};
KF_RT static KfIndex kf_in_group() { return {kf::self->tid.x, kf::self->tid.y, kf::self->tid.z}; }
KF_RT static KfIndex kf_group() { return {kf::block_index.x, kf::block_index.y, kf::block_index.z}; }
KF_RT static KfIndex kf_group_size() { return {kf::block_size.x, kf::block_size.y, kf::block_size.z}; }
KF_RT static KfIndex kf_groups() { return {kf::grid_size.x, kf::grid_size.y, kf::grid_size.z}; }
KF_RT static KfIndex kf_threads() {
  return {kf::grid_size.x * kf::block_size.x, kf::grid_size.y * kf::block_size.y, kf::grid_size.z * kf::block_size.z};
}
KF_RT static KfIndex kf_in_grid() {
  return {kf::block_index.x * kf::block_size.x + kf::self->tid.x, kf::block_index.y * kf::block_size.y + kf::self->tid.y,
          kf::block_index.z * kf::block_size.z + kf::self->tid.z};
}
KF_RT static KfIndex kf_one(unsigned x) { return {x, 0, 0}; }

namespace metal {
using std::array;
using std::conditional_t;
using std::enable_if_t;
using std::is_integral_v;
using std::is_same;
using std::is_same_v;
using std::remove_const_t;
using ::kf_user::as_type;
using ::kf_user::vec;
template <typename T> struct numeric_limits : std::numeric_limits<T> {};
template <> struct numeric_limits<half> {
  static constexpr half max() { return (half)65504.0f; }
  static constexpr half lowest() { return (half)-65504.0f; }
  static constexpr half min() { return (half)6.103515625e-5f; }
  static constexpr half epsilon() { return (half)9.765625e-4f; }
  static constexpr half infinity() { return (half)HUGE_VALF; }
  static constexpr half quiet_NaN() { return (half)__builtin_nanf(""); }
};

// --- functions of one number or of each element --------------------------------------------------
#define KF_UNARY(name, expression)                                                                      \
  template <KfReal T> KF_IN T name(T t) { const float x = (float)t; return (T)(expression); }           \
  template <typename T, int N> KF_IN vec<T, N> name(vec<T, N> v) { KF_EACH(N, T, name(v.e[i])) }
#define KF_UNARY_C(name) KF_UNARY(name, ::name##f(x))
KF_UNARY_C(exp) KF_UNARY_C(exp2) KF_UNARY_C(log) KF_UNARY_C(log2) KF_UNARY_C(log10) KF_UNARY_C(sin) KF_UNARY_C(cos)
KF_UNARY_C(tan) KF_UNARY_C(asin) KF_UNARY_C(acos) KF_UNARY_C(atan) KF_UNARY_C(sinh) KF_UNARY_C(cosh) KF_UNARY_C(tanh)
KF_UNARY_C(asinh) KF_UNARY_C(acosh) KF_UNARY_C(atanh) KF_UNARY_C(sqrt) KF_UNARY_C(floor) KF_UNARY_C(ceil)
KF_UNARY_C(round) KF_UNARY_C(rint) KF_UNARY_C(trunc) KF_UNARY_C(fabs)
KF_UNARY(exp10, ::powf(10.0f, x))
KF_UNARY(rsqrt, 1.0f / ::sqrtf(x))
KF_UNARY(sinpi, ::sinf(3.14159265358979f * x))
KF_UNARY(cospi, ::cosf(3.14159265358979f * x))
KF_UNARY(fract, ::fminf(x - ::floorf(x), 0x1.fffffep-1f))
KF_UNARY(saturate, ::fminf(::fmaxf(x, 0.0f), 1.0f))
KF_UNARY(sign, x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x == x ? x : 0.0f)
#define KF_TEST(name, expression)                                                                       \
  template <KfReal T> KF_IN bool name(T t) { const float x = (float)t; return (expression); }           \
  template <typename T, int N> KF_IN vec<bool, N> name(vec<T, N> v) { KF_EACH(N, bool, name(v.e[i])) }
KF_TEST(isnan, x != x)
KF_TEST(isinf, ::fabsf(x) == HUGE_VALF)
KF_TEST(isfinite, ::fabsf(x) < HUGE_VALF)
KF_TEST(isnormal, ::fabsf(x) < HUGE_VALF && ::fabsf(x) >= FLT_MIN)
KF_TEST(signbit, std::signbit(x))
template <KfReal T> KF_IN T abs(T x) { return (T)::fabsf((float)x); }
template <KfInteger T> KF_IN T abs(T x) { return x < 0 ? (T)-x : x; }
template <typename T, int N> KF_IN vec<T, N> abs(vec<T, N> v) { KF_EACH(N, T, abs(v.e[i])) }

// --- of two and three: the types must be one, as for Apple's compiler -----------------------------
#define KF_BINARY(name, kind, expression)                                                                                               \
  template <kind T> KF_IN T name(T a, T b) { return (T)(expression); }                                                                  \
  template <KfScalar A, KfScalar B> requires (!std::is_same_v<A, B>) __attribute__((unavailable("call to '" #name "' is ambiguous: give both arguments one type"))) \
  float name(A, B);                                                                                                                     \
  template <typename T, int N> KF_IN vec<T, N> name(vec<T, N> a, std::type_identity_t<vec<T, N>> b) { KF_EACH(N, T, name(a.e[i], b.e[i])) } \
  template <typename T, int N> KF_IN vec<T, N> name(std::type_identity_t<T> a, vec<T, N> b) { KF_EACH(N, T, name(a, b.e[i])) }
#define KF_BINARY_REAL(name, expression) KF_BINARY(name, KfReal, expression)
KF_BINARY_REAL(pow, ::powf((float)a, (float)b))
KF_BINARY_REAL(powr, ::powf((float)a, (float)b))
KF_BINARY_REAL(fmin, ::fminf((float)a, (float)b))
KF_BINARY_REAL(fmax, ::fmaxf((float)a, (float)b))
KF_BINARY_REAL(fmod, ::fmodf((float)a, (float)b))
KF_BINARY_REAL(fdim, ::fdimf((float)a, (float)b))
KF_BINARY_REAL(atan2, ::atan2f((float)a, (float)b))
KF_BINARY_REAL(copysign, ::copysignf((float)a, (float)b))
KF_BINARY_REAL(step, b < a ? 0.0f : 1.0f)
template <typename T> KF_IN T kf_least(T a, T b) {
  if constexpr (KfReal<T>) return (T)::fminf((float)a, (float)b); else return b < a ? b : a;
}
template <typename T> KF_IN T kf_most(T a, T b) {
  if constexpr (KfReal<T>) return (T)::fmaxf((float)a, (float)b); else return a < b ? b : a;
}
KF_BINARY(min, KfScalar, kf_least(a, b))
KF_BINARY(max, KfScalar, kf_most(a, b))
KF_BINARY(absdiff, KfInteger, a > b ? a - b : b - a)
KF_BINARY(mulhi, KfInteger, ((__int128)a * b) >> (8 * sizeof(T)))
KF_BINARY(rotate, KfInteger, std::rotl((std::make_unsigned_t<T>)a, (int)b))
template <KfScalar T> KF_IN T min3(T a, T b, T c) { return kf_least(a, kf_least(b, c)); }
template <KfScalar T> KF_IN T max3(T a, T b, T c) { return kf_most(a, kf_most(b, c)); }
#define KF_TERNARY(name, kind, expression)                                                                                              \
  template <kind T> KF_IN T name(T a, std::type_identity_t<T> b, std::type_identity_t<T> c) { return (T)(expression); }                  \
  template <typename T, int N> KF_IN vec<T, N> name(vec<T, N> a, std::type_identity_t<vec<T, N>> b, std::type_identity_t<vec<T, N>> c) { \
    KF_EACH(N, T, name(a.e[i], b.e[i], c.e[i])) }
KF_TERNARY(fma, KfReal, ::fmaf((float)a, (float)b, (float)c))
KF_TERNARY(mix, KfReal, (float)a + ((float)b - (float)a) * (float)c)
KF_TERNARY(clamp, KfScalar, kf_least(kf_most(a, b), c))
template <KfReal T> KF_IN T smoothstep(T a, T b, T x) {
  const float t = ::fminf(::fmaxf(((float)x - (float)a) / ((float)b - (float)a), 0.0f), 1.0f);
  return (T)(t * t * (3.0f - 2.0f * t));
}
template <KfScalar T> KF_IN T select(T a, T b, bool c) { return c ? b : a; }
template <typename T, int N> KF_IN vec<T, N> select(vec<T, N> a, std::type_identity_t<vec<T, N>> b, vec<bool, N> c) { KF_EACH(N, T, c.e[i] ? b.e[i] : a.e[i]) }
template <KfReal T> KF_IN T sincos(T x, T& c) { c = (T)::cosf((float)x); return (T)::sinf((float)x); }
template <KfReal T> KF_IN T modf(T x, T& whole) { whole = (T)::truncf((float)x); return (T)((float)x - (float)whole); }
template <KfReal T> KF_IN T frexp(T x, int& e) { return (T)::frexpf((float)x, &e); }
template <KfReal T> KF_IN T ldexp(T x, int e) { return (T)::ldexpf((float)x, e); }
template <KfInteger T> KF_IN T popcount(T x) { return (T)std::popcount((std::make_unsigned_t<T>)x); }
template <KfInteger T> KF_IN T clz(T x) { return (T)std::countl_zero((std::make_unsigned_t<T>)x); }
template <KfInteger T> KF_IN T ctz(T x) { return (T)std::countr_zero((std::make_unsigned_t<T>)x); }
template <KfInteger T> KF_IN T reverse_bits(T x) {
  std::make_unsigned_t<T> r = 0;
  for (size_t k = 0; k < 8 * sizeof(T); ++k) r |= (std::make_unsigned_t<T>)(x >> k & 1) << (8 * sizeof(T) - 1 - k);
  return (T)r;
}
template <KfInteger T> KF_IN T mul24(T a, T b) { return a * b; }
template <KfInteger T> KF_IN T mad24(T a, T b, T c) { return a * b + c; }
template <KfInteger T> KF_IN T madhi(T a, T b, T c) { return mulhi(a, b) + c; }
template <KfInteger T> KF_IN T extract_bits(T x, uint offset, uint bits) {
  if (bits == 0) return 0;
  const int up = (int)(8 * sizeof(T) - offset - bits);
  return (T)((T)((std::make_unsigned_t<T>)x << up) >> (8 * sizeof(T) - bits));
}

// --- geometry ------------------------------------------------------------------------------------
template <typename T, int N> KF_IN T dot(vec<T, N> a, vec<T, N> b) { T s = a.e[0] * b.e[0]; for (int i = 1; i < N; ++i) s = (T)(s + a.e[i] * b.e[i]); return s; }
template <typename T, int N> KF_IN T length_squared(vec<T, N> a) { return dot(a, a); }
template <typename T, int N> KF_IN T length(vec<T, N> a) { return sqrt(dot(a, a)); }
template <typename T, int N> KF_IN T distance(vec<T, N> a, vec<T, N> b) { return length(a - b); }
template <typename T, int N> KF_IN T distance_squared(vec<T, N> a, vec<T, N> b) { return length_squared(a - b); }
template <typename T, int N> KF_IN vec<T, N> normalize(vec<T, N> a) { return a * rsqrt(dot(a, a)); }
template <typename T> KF_IN vec<T, 3> cross(vec<T, 3> a, vec<T, 3> b) {
  return {(T)(a.e[1] * b.e[2] - a.e[2] * b.e[1]), (T)(a.e[2] * b.e[0] - a.e[0] * b.e[2]), (T)(a.e[0] * b.e[1] - a.e[1] * b.e[0])};
}
template <int N> KF_IN bool all(vec<bool, N> v) { bool r = true; for (int i = 0; i < N; ++i) r = r && v.e[i]; return r; }
template <int N> KF_IN bool any(vec<bool, N> v) { bool r = false; for (int i = 0; i < N; ++i) r = r || v.e[i]; return r; }

// Apple's approximations are no closer than these: what is right only here is not found here.
namespace fast { using namespace ::kf_user::metal; }
namespace precise { using namespace ::kf_user::metal; }

// --- barriers ------------------------------------------------------------------------------------
enum class mem_flags { mem_none = 0, mem_threadgroup = 1, mem_device = 2, mem_texture = 4, mem_threadgroup_imageblock = 8 };
KF_IN constexpr mem_flags operator|(mem_flags a, mem_flags b) { return (mem_flags)((int)a | (int)b); }
KF_RT static void threadgroup_barrier(mem_flags flags, int line = __builtin_LINE()) { kf::barrier(line, (int)flags & 3); }
KF_RT static void simdgroup_barrier(mem_flags flags, int line = __builtin_LINE()) { kf::simd_meet(line, (int)flags & 3); }

// --- SIMD-groups ---------------------------------------------------------------------------------
#define KF_FOLD(name, expression)                                                                                           \
  template <typename T> KF_RT static T name(T v, int line = __builtin_LINE()) {                                              \
    return kf::fold(v, v, 32, [](T a, T b) -> T { return (T)(expression); }, line);                                    \
  }
KF_FOLD(simd_sum, a + b)
KF_FOLD(simd_product, a * b)
KF_FOLD(simd_min, min(a, b))
KF_FOLD(simd_max, max(a, b))
KF_FOLD(simd_and, a & b)
KF_FOLD(simd_or, a | b)
KF_FOLD(simd_xor, a ^ b)
#define KF_PREFIX(name, end, start, op)                                                                                     \
  template <typename T> KF_RT static T name(T v, int line = __builtin_LINE()) {                                              \
    return kf::fold(v, (T)(start), kf::lane() + end, [](T a, T b) -> T { return (T)(a op b); }, line);                 \
  }
KF_PREFIX(simd_prefix_inclusive_sum, 1, 0, +)
KF_PREFIX(simd_prefix_exclusive_sum, 0, 0, +)
KF_PREFIX(simd_prefix_inclusive_product, 1, 1, *)
KF_PREFIX(simd_prefix_exclusive_product, 0, 1, *)
#define KF_LANE template <typename T> KF_RT static T
KF_LANE simd_shuffle(T v, ushort lane, int line = __builtin_LINE()) { return kf::from_lane(v, lane, line); }
KF_LANE simd_broadcast(T v, ushort lane, int line = __builtin_LINE()) { return kf::from_lane(v, lane, line); }
KF_LANE simd_shuffle_xor(T v, ushort mask, int line = __builtin_LINE()) { return kf::from_lane(v, kf::lane() ^ mask, line); }
KF_LANE simd_shuffle_up(T v, ushort d, int line = __builtin_LINE()) { return kf::from_lane_or(v, kf::lane() - d, v, line); }
KF_LANE simd_shuffle_down(T v, ushort d, int line = __builtin_LINE()) { return kf::from_lane_or(v, kf::lane() + d, v, line); }
KF_LANE simd_shuffle_rotate_up(T v, ushort d, int line = __builtin_LINE()) { return kf::from_lane(v, (kf::lane() - d) & 31, line); }
KF_LANE simd_shuffle_rotate_down(T v, ushort d, int line = __builtin_LINE()) { return kf::from_lane(v, (kf::lane() + d) & 31, line); }
KF_LANE simd_broadcast_first(T v, int line = __builtin_LINE()) {
  kf::offer(v, line);
  const T x = kf::offered<T>(__builtin_ctz(kf::self->active));
  kf::gather(line);
  return x;
}
struct simd_vote {
  typedef unsigned long vote_t;
  vote_t v;
  KF_IN explicit operator vote_t() const { return v; }
};
KF_RT static simd_vote simd_ballot(bool p, int line = __builtin_LINE()) { return {kf::ballot(p, line)}; }
KF_RT static simd_vote simd_active_threads_mask(int line = __builtin_LINE()) { return {kf::ballot(true, line)}; }
KF_RT static bool simd_any(bool p, int line = __builtin_LINE()) { return kf::ballot(p, line) != 0; }
KF_RT static bool simd_all(bool p, int line = __builtin_LINE()) { return kf::ballot(!p, line) == 0; }
KF_RT static bool simd_is_first(int line = __builtin_LINE()) {
  const unsigned here = kf::ballot(true, line);
  return __builtin_ctz(here) == kf::lane();
}

// --- atomics -------------------------------------------------------------------------------------
enum memory_order { memory_order_relaxed, memory_order_acquire, memory_order_release, memory_order_acq_rel, memory_order_seq_cst };
enum thread_scope { thread_scope_thread, thread_scope_simdgroup, thread_scope_threadgroup, thread_scope_device };
template <typename T> struct atomic { T kf_v; };
typedef atomic<int> atomic_int;
typedef atomic<uint> atomic_uint;
typedef atomic<bool> atomic_bool;
typedef atomic<float> atomic_float;
typedef atomic<ulong> atomic_ulong;
#define KF_ATOMIC(name, expression)                                                                                                   \
  template <typename T> KF_RT static T name(volatile atomic<T>* p, std::type_identity_t<T> v, memory_order, int line = __builtin_LINE()) { \
    return kf::atomic_do((T*)&p->kf_v, [v](T o) KF_RT -> T { return (T)(expression); }, line);                                        \
  }
KF_ATOMIC(atomic_exchange_explicit, v)
KF_ATOMIC(atomic_fetch_add_explicit, o + v)
KF_ATOMIC(atomic_fetch_sub_explicit, o - v)
KF_ATOMIC(atomic_fetch_min_explicit, v < o ? v : o)
KF_ATOMIC(atomic_fetch_max_explicit, v > o ? v : o)
KF_ATOMIC(atomic_fetch_and_explicit, o & v)
KF_ATOMIC(atomic_fetch_or_explicit, o | v)
KF_ATOMIC(atomic_fetch_xor_explicit, o ^ v)
template <typename T> KF_RT static void atomic_store_explicit(volatile atomic<T>* p, std::type_identity_t<T> v, memory_order, int line = __builtin_LINE()) {
  kf::atomic_do((T*)&p->kf_v, [v](T) KF_RT -> T { return v; }, line);
}
template <typename T> KF_RT static T atomic_load_explicit(const volatile atomic<T>* p, memory_order, int line = __builtin_LINE()) {
  return kf::atomic_do((T*)&p->kf_v, [](T o) KF_RT -> T { return o; }, line);
}
template <typename T> KF_RT static bool atomic_compare_exchange_weak_explicit(volatile atomic<T>* p, T* expected, std::type_identity_t<T> v, memory_order, memory_order, int line = __builtin_LINE()) {
  const T wanted = *expected;
  *expected = kf::atomic_do((T*)&p->kf_v, [wanted, v](T o) KF_RT -> T { return o == wanted ? v : o; }, line);
  return *expected == wanted;
}
KF_RT static void atomic_thread_fence(mem_flags, memory_order, thread_scope = thread_scope_device) { kf::device_fence(); }
}  // namespace metal
using metal::atomic_bool;
using metal::atomic_float;
using metal::atomic_int;
using metal::atomic_uint;

// What C has and Metal has not.
#define KF_FOREIGN(name) template <typename... A> __attribute__((unavailable("Metal has no such function"))) float name(A...);
KF_FOREIGN(erf) KF_FOREIGN(erfc) KF_FOREIGN(expm1) KF_FOREIGN(log1p) KF_FOREIGN(cbrt) KF_FOREIGN(tgamma) KF_FOREIGN(lgamma)
KF_FOREIGN(erff) KF_FOREIGN(erfcf) KF_FOREIGN(expf) KF_FOREIGN(exp2f) KF_FOREIGN(expm1f) KF_FOREIGN(logf) KF_FOREIGN(log2f)
KF_FOREIGN(log1pf) KF_FOREIGN(sqrtf) KF_FOREIGN(powf) KF_FOREIGN(tanhf) KF_FOREIGN(sinf) KF_FOREIGN(cosf) KF_FOREIGN(tanf)
KF_FOREIGN(fabsf) KF_FOREIGN(fmaxf) KF_FOREIGN(fminf) KF_FOREIGN(fmaf) KF_FOREIGN(floorf) KF_FOREIGN(ceilf) KF_FOREIGN(roundf)
KF_FOREIGN(rintf) KF_FOREIGN(truncf) KF_FOREIGN(printf) KF_FOREIGN(malloc) KF_FOREIGN(free) KF_FOREIGN(memcpy) KF_FOREIGN(memset) KF_FOREIGN(hypot)
}  // namespace kf_user
#define MAXFLOAT FLT_MAX
#define HALF_MAX ((::kf_user::half)65504.0f)
#define M_E_F 2.71828182845904523536f
#define M_LOG2E_F 1.44269504088896340736f
#define M_LOG10E_F 0.43429448190325182765f
#define M_LN2_F 0.69314718055994530942f
#define M_LN10_F 2.30258509299404568402f
#define M_PI_F 3.14159265358979323846f
#define M_PI_2_F 1.57079632679489661923f
#define M_PI_4_F 0.78539816339744830962f
#define M_1_PI_F 0.31830988618379067154f
#define M_2_PI_F 0.63661977236758134308f
#define M_2_SQRTPI_F 1.12837916709551257390f
#define M_SQRT2_F 1.41421356237309504880f
#define M_SQRT1_2_F 0.70710678118654752440f

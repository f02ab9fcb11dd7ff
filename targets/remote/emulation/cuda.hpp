// The words of CUDA and HIP that kernels use, on top of simt.hpp.
#pragma once
#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __restrict__ __restrict
#define __align__(n) alignas(n)
#define __grid_constant__
#define KF_SHARED(name) \
  static void* kf_m_##name; \
  kf_t_##name& name = *(kf_t_##name*)kf::shared_array(&kf_m_##name, sizeof(kf_t_##name), kf::grain_of<kf_t_##name>());
#define KF_DYNAMIC kf::dynamic_shared

namespace kf {
template <typename T> constexpr size_t grain_of() {
  const size_t n = sizeof(std::remove_all_extents_t<T>);
  return n == 1 || n == 2 ? n : 4;
}
KF_RT __attribute__((noinline)) static uint3 thread_index() { return self->tid; }
KF_RT __attribute__((noinline)) static uint3 block_of() { return block_index; }
KF_RT __attribute__((noinline)) static dim3 block_shape() { return block_size; }
KF_RT __attribute__((noinline)) static dim3 grid_shape() { return grid_size; }
KF_RT __attribute__((noinline)) static int warp_width() { return now->warp; }
KF_RT __attribute__((noinline)) static void fence() { ++fences; }
}  // namespace kf
#define threadIdx (kf::thread_index())
#define blockIdx (kf::block_of())
#define blockDim (kf::block_shape())
#define gridDim (kf::grid_shape())
#define warpSize (kf::warp_width())
#define hipThreadIdx_x ((int)threadIdx.x)
#define hipThreadIdx_y ((int)threadIdx.y)
#define hipThreadIdx_z ((int)threadIdx.z)
#define hipBlockIdx_x ((int)blockIdx.x)
#define hipBlockIdx_y ((int)blockIdx.y)
#define hipBlockIdx_z ((int)blockIdx.z)
#define hipBlockDim_x ((int)blockDim.x)
#define hipBlockDim_y ((int)blockDim.y)
#define hipBlockDim_z ((int)blockDim.z)
#define hipGridDim_x ((int)gridDim.x)

// Barriers and exchanges carry the line on which they stand.
#define __syncthreads() kf::barrier(__LINE__)
#define __syncthreads_count(p) kf::block_votes((p) != 0, __LINE__)
#define __syncthreads_or(p) (kf::block_votes((p) != 0, __LINE__) != 0)
#define __syncthreads_and(p) (kf::block_votes((p) == 0, __LINE__) == 0)
#define KF_FIRST(a, ...) a
#define __syncwarp(...) kf::warp_barrier(KF_FIRST(__VA_ARGS__ __VA_OPT__(,) 0xffffffffu), __LINE__)
#define __threadfence() kf::fence()
#define __threadfence_block() ((void)0)
#define __threadfence_system() kf::fence()
#define __shfl_sync(...) kf::shfl(__LINE__, __VA_ARGS__)
#define __shfl_up_sync(...) kf::shfl_up(__LINE__, __VA_ARGS__)
#define __shfl_down_sync(...) kf::shfl_down(__LINE__, __VA_ARGS__)
#define __shfl_xor_sync(...) kf::shfl_xor(__LINE__, __VA_ARGS__)
#define __shfl(...) kf::shfl(__LINE__, ~0u, __VA_ARGS__)
#define __shfl_up(...) kf::shfl_up(__LINE__, ~0u, __VA_ARGS__)
#define __shfl_down(...) kf::shfl_down(__LINE__, ~0u, __VA_ARGS__)
#define __shfl_xor(...) kf::shfl_xor(__LINE__, ~0u, __VA_ARGS__)
#define __ballot_sync(m, p) ((unsigned)kf::votes(m, (p) != 0, __LINE__))
#define __ballot(p) kf::votes(~0u, (p) != 0, __LINE__)
#define __any_sync(m, p) (kf::votes(m, (p) != 0, __LINE__) != 0)
#define __all_sync(m, p) (kf::votes(m, (p) == 0, __LINE__) == 0)
#define __any(p) (kf::votes(~0u, (p) != 0, __LINE__) != 0)
#define __all(p) (kf::votes(~0u, (p) == 0, __LINE__) == 0)
#define __activemask() kf::active()
#define __reduce_add_sync(m, v) kf::reduce(m, v, [](auto a, auto b) { return a + b; }, __LINE__)
#define __reduce_min_sync(m, v) kf::reduce(m, v, [](auto a, auto b) { return a < b ? a : b; }, __LINE__)
#define __reduce_max_sync(m, v) kf::reduce(m, v, [](auto a, auto b) { return a > b ? a : b; }, __LINE__)
#define __reduce_and_sync(m, v) kf::reduce(m, v, [](auto a, auto b) { return a & b; }, __LINE__)
#define __reduce_or_sync(m, v) kf::reduce(m, v, [](auto a, auto b) { return a | b; }, __LINE__)
#define __reduce_xor_sync(m, v) kf::reduce(m, v, [](auto a, auto b) { return a ^ b; }, __LINE__)

namespace kf {
KF_RT static int whole(int width) { return width <= 0 ? now->warp : width; }
template <typename T> KF_RT static T shfl(int line, unsigned m, T v, int lane, int width = 0) {
  const int w = whole(width);
  return exchange(m, v, self->lane / w * w + (lane & (w - 1)), line);
}
template <typename T> KF_RT static T shfl_up(int line, unsigned m, T v, unsigned d, int width = 0) {
  const int w = whole(width), at = self->lane - (int)d;
  return exchange(m, v, at < self->lane / w * w ? self->lane : at, line);
}
template <typename T> KF_RT static T shfl_down(int line, unsigned m, T v, unsigned d, int width = 0) {
  const int w = whole(width), at = self->lane + (int)d;
  return exchange(m, v, at >= (self->lane / w + 1) * w ? self->lane : at, line);
}
template <typename T> KF_RT static T shfl_xor(int line, unsigned m, T v, int mask, int width = 0) {
  const int w = whole(width), at = self->lane ^ mask;
  return exchange(m, v, at / w > self->lane / w ? self->lane : at, line);
}
template <typename T, typename F> KF_RT static T reduce(unsigned m, T v, F f, int line) {
  const int begin = self->warp * now->warp;
  std::memcpy(warp_slots[self->index], &v, sizeof v);
  warp_barrier(m, line);
  bool any = false;
  T sum = v;
  for (int k = 0; k < now->warp && begin + k < thread_count; ++k) {
    if (!(m >> k & 1) || fibers[begin + k].state == DONE) continue;
    T x;
    std::memcpy(&x, warp_slots[begin + k], sizeof x);
    sum = any ? f(sum, x) : x;
    any = true;
  }
  warp_barrier(m, line);
  return sum;
}
KF_RT static unsigned active() {
  unsigned found = 0;
  const int begin = self->warp * now->warp;
  for (int k = 0; k < 32 && begin + k < thread_count; ++k)
    found |= (unsigned)(fibers[begin + k].state != DONE) << k;
  return found;
}
KF_RT static int block_votes(bool yes, int line) {
  warp_slots[self->index][0] = yes;
  barrier(line);
  int found = 0;
  for (int k = 0; k < thread_count; ++k) found += fibers[k].state != DONE && (warp_slots[k][0] & 1);
  barrier(line);
  return found;
}
// Fibers change hands at barriers only, so that an atomic is a plain operation.
template <typename T, typename F> KF_RT static T atomic(T* p, F f) {
  touch_atomic(p, sizeof(T));
  const T old = *p;
  *p = f(old);
  return old;
}
}  // namespace kf
namespace kf_user {
template <typename T> KF_RT static T atomicAdd(T* p, std::type_identity_t<T> v) { return kf::atomic(p, [v](T o) KF_RT { return (T)(o + v); }); }
template <typename T> KF_RT static T atomicSub(T* p, std::type_identity_t<T> v) { return kf::atomic(p, [v](T o) KF_RT { return (T)(o - v); }); }
template <typename T> KF_RT static T atomicMax(T* p, std::type_identity_t<T> v) { return kf::atomic(p, [v](T o) KF_RT { return o > v ? o : v; }); }
template <typename T> KF_RT static T atomicMin(T* p, std::type_identity_t<T> v) { return kf::atomic(p, [v](T o) KF_RT { return o < v ? o : v; }); }
template <typename T> KF_RT static T atomicExch(T* p, std::type_identity_t<T> v) { return kf::atomic(p, [v](T) KF_RT { return v; }); }
template <typename T> KF_RT static T atomicAnd(T* p, std::type_identity_t<T> v) { return kf::atomic(p, [v](T o) KF_RT { return (T)(o & v); }); }
template <typename T> KF_RT static T atomicOr(T* p, std::type_identity_t<T> v) { return kf::atomic(p, [v](T o) KF_RT { return (T)(o | v); }); }
template <typename T> KF_RT static T atomicXor(T* p, std::type_identity_t<T> v) { return kf::atomic(p, [v](T o) KF_RT { return (T)(o ^ v); }); }
template <typename T> KF_RT static T atomicCAS(T* p, std::type_identity_t<T> c, std::type_identity_t<T> v) { return kf::atomic(p, [c, v](T o) KF_RT { return o == c ? v : o; }); }
static inline KF_RT unsigned atomicInc(unsigned* p, unsigned v) { return kf::atomic(p, [v](unsigned o) KF_RT { return o >= v ? 0u : o + 1; }); }
static inline KF_RT unsigned atomicDec(unsigned* p, unsigned v) { return kf::atomic(p, [v](unsigned o) KF_RT { return o == 0 || o > v ? v : o - 1; }); }

// --- vector types --------------------------------------------------------------------------------
#define KF_VECTOR(T, N, A2, A4)                                                                            \
  struct alignas(A2) N##2 { T x, y; };                                                                     \
  struct N##3 { T x, y, z; };                                                                              \
  struct alignas(A4) N##4 { T x, y, z, w; };                                                               \
  static inline N##2 make_##N##2(T x, T y) { return N##2{x, y}; }                                          \
  static inline N##3 make_##N##3(T x, T y, T z) { return N##3{x, y, z}; }                                  \
  static inline N##4 make_##N##4(T x, T y, T z, T w) { return N##4{x, y, z, w}; }
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
KF_VECTOR(float, float, 8, 16)
KF_VECTOR(int, int, 8, 16)
KF_VECTOR(char, char, 2, 4)
KF_VECTOR(unsigned char, uchar, 2, 4)
KF_VECTOR(short, short, 4, 8)
KF_VECTOR(unsigned short, ushort, 4, 8)
KF_VECTOR(double, double, 16, 16)
KF_VECTOR(long long, longlong, 16, 16)
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
static inline uint2 make_uint2(unsigned x, unsigned y) { return uint2{x, y}; }
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return uint4{x, y, z, w}; }

// --- numbers -------------------------------------------------------------------------------------
using std::isfinite;
using std::isinf;
using std::isnan;
template <typename A, typename B> static inline auto min(A a, B b) -> std::common_type_t<A, B> { return a < b ? a : b; }
template <typename A, typename B> static inline auto max(A a, B b) -> std::common_type_t<A, B> { return a > b ? a : b; }
template <typename T> static inline T __ldg(const T* p) { return *p; }
template <typename T> static inline T __ldcs(const T* p) { return *p; }
template <typename T> static inline T __ldcg(const T* p) { return *p; }
template <typename T> static inline T __ldca(const T* p) { return *p; }
template <typename T> static inline void __stcs(T* p, T v) { *p = v; }
template <typename T> static inline void __stcg(T* p, T v) { *p = v; }
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / ::sqrt(x); }
static inline float __expf(float x) { return expf(x); }
static inline float __exp10f(float x) { return powf(10.0f, x); }
static inline float exp10f(float x) { return powf(10.0f, x); }
static inline float __logf(float x) { return logf(x); }
static inline float __log2f(float x) { return log2f(x); }
static inline float __log10f(float x) { return log10f(x); }
static inline float __sinf(float x) { return sinf(x); }
static inline float __cosf(float x) { return cosf(x); }
static inline float __tanf(float x) { return tanf(x); }
static inline float __powf(float x, float y) { return powf(x, y); }
static inline float __saturatef(float x) { return x != x || x < 0.0f ? 0.0f : x > 1.0f ? 1.0f : x; }
static inline float __fdividef(float x, float y) { return x / y; }
static inline float __fdiv_rn(float x, float y) { return x / y; }
static inline float __fadd_rn(float x, float y) { return x + y; }
static inline float __fsub_rn(float x, float y) { return x - y; }
static inline float __fmul_rn(float x, float y) { return x * y; }
static inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
static inline float __frcp_rn(float x) { return 1.0f / x; }
static inline float __fsqrt_rn(float x) { return sqrtf(x); }
static inline float __frsqrt_rn(float x) { return 1.0f / sqrtf(x); }
static inline float normcdff(float x) { return 0.5f * erfcf(-x * 0.707106781f); }
static inline float rcbrtf(float x) { return 1.0f / cbrtf(x); }
static inline void sincosf_(float x, float* s, float* c) { *s = sinf(x); *c = cosf(x); }
static inline int __float_as_int(float x) { int i; std::memcpy(&i, &x, 4); return i; }
static inline unsigned __float_as_uint(float x) { unsigned i; std::memcpy(&i, &x, 4); return i; }
static inline float __int_as_float(int i) { float x; std::memcpy(&x, &i, 4); return x; }
static inline float __uint_as_float(unsigned i) { float x; std::memcpy(&x, &i, 4); return x; }
static inline int __float2int_rn(float x) { return (int)nearbyintf(x); }
static inline int __float2int_rz(float x) { return (int)x; }
static inline int __float2int_rd(float x) { return (int)floorf(x); }
static inline int __float2int_ru(float x) { return (int)ceilf(x); }
static inline float __int2float_rn(int x) { return (float)x; }
static inline float __uint2float_rn(unsigned x) { return (float)x; }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline unsigned __brev(unsigned x) { unsigned r = 0; for (int k = 0; k < 32; ++k) r |= (x >> k & 1) << (31 - k); return r; }
static inline int __mul24(int a, int b) { return a * b; }
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
static inline int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
static inline int __dp4a(int a, int b, int c) {
  for (int k = 0; k < 4; ++k) c += (int)(signed char)(a >> 8 * k) * (int)(signed char)(b >> 8 * k);
  return c;
}

// --- half and bfloat16 ---------------------------------------------------------------------------
struct __half {
  _Float16 v;
  __half() = default;
  __half(float x) : v((_Float16)x) {}
  __half(double x) : v((_Float16)x) {}
  __half(int x) : v((_Float16)x) {}
  operator float() const { return (float)v; }
  __half& operator+=(__half o) { v = (_Float16)((float)v + (float)o.v); return *this; }
  __half& operator-=(__half o) { v = (_Float16)((float)v - (float)o.v); return *this; }
  __half& operator*=(__half o) { v = (_Float16)((float)v * (float)o.v); return *this; }
};
struct __nv_bfloat16 {
  unsigned short v;
  __nv_bfloat16() = default;
  __nv_bfloat16(float x) {
    const unsigned i = __float_as_uint(x);
    v = x != x ? 0x7fff : (unsigned short)((i + 0x7fff + (i >> 16 & 1)) >> 16);
  }
  __nv_bfloat16(double x) : __nv_bfloat16((float)x) {}
  __nv_bfloat16(int x) : __nv_bfloat16((float)x) {}
  operator float() const { return __uint_as_float((unsigned)v << 16); }
  __nv_bfloat16& operator+=(__nv_bfloat16 o) { return *this = __nv_bfloat16((float)*this + (float)o); }
  __nv_bfloat16& operator*=(__nv_bfloat16 o) { return *this = __nv_bfloat16((float)*this * (float)o); }
};
#define KF_HALF(H, H2, name)                                                                                    \
  static inline H operator+(H a, H b) { return H((float)a + (float)b); }                                        \
  static inline H operator-(H a, H b) { return H((float)a - (float)b); }                                        \
  static inline H operator*(H a, H b) { return H((float)a * (float)b); }                                        \
  static inline H operator/(H a, H b) { return H((float)a / (float)b); }                                        \
  static inline H operator-(H a) { return H(-(float)a); }                                                       \
  static inline bool operator<(H a, H b) { return (float)a < (float)b; }                                        \
  static inline bool operator>(H a, H b) { return (float)a > (float)b; }                                        \
  struct alignas(4) H2 { H x, y; };                                                                             \
  static inline H __float2##name(float x) { return H(x); }                                                      \
  static inline H __float2##name##_rn(float x) { return H(x); }                                                 \
  static inline float __##name##2float(H x) { return (float)x; }                                                \
  static inline H __hadd(H a, H b) { return a + b; }                                                            \
  static inline H __hsub(H a, H b) { return a - b; }                                                            \
  static inline H __hmul(H a, H b) { return a * b; }                                                            \
  static inline H __hdiv(H a, H b) { return a / b; }                                                            \
  static inline H __hfma(H a, H b, H c) { return H(fmaf((float)a, (float)b, (float)c)); }                       \
  static inline H __hmax(H a, H b) { return (float)a > (float)b ? a : b; }                                      \
  static inline H __hmin(H a, H b) { return (float)a < (float)b ? a : b; }                                      \
  static inline bool __hgt(H a, H b) { return a > b; }                                                          \
  static inline bool __hlt(H a, H b) { return a < b; }                                                          \
  static inline H hexp(H a) { return H(expf((float)a)); }                                                       \
  static inline H hsqrt(H a) { return H(sqrtf((float)a)); }                                                     \
  static inline H2 __hadd2(H2 a, H2 b) { return H2{a.x + b.x, a.y + b.y}; }                                     \
  static inline H2 __hsub2(H2 a, H2 b) { return H2{a.x - b.x, a.y - b.y}; }                                     \
  static inline H2 __hmul2(H2 a, H2 b) { return H2{a.x * b.x, a.y * b.y}; }                                     \
  static inline H2 __hfma2(H2 a, H2 b, H2 c) { return H2{__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }       \
  static inline float2 __##name##22float2(H2 a) { return float2{(float)a.x, (float)a.y}; }                      \
  static inline H2 __float22##name##2_rn(float2 a) { return H2{H(a.x), H(a.y)}; }                               \
  static inline H2 __floats2##name##2_rn(float a, float b) { return H2{H(a), H(b)}; }                           \
  static inline H2 __##name##2##name##2(H a) { return H2{a, a}; }                                               \
  static inline float __low2float(H2 a) { return (float)a.x; }                                                  \
  static inline float __high2float(H2 a) { return (float)a.y; }
KF_HALF(__half, __half2, half)
KF_HALF(__nv_bfloat16, __nv_bfloat162, bfloat16)
typedef __half half;
typedef __half2 half2;
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;
typedef __nv_bfloat16 __hip_bfloat16;
static inline __half2 make_half2(__half a, __half b) { return __half2{a, b}; }

}  // namespace kf_user

// --- from Python ---------------------------------------------------------------------------------
namespace kf {
template <typename F> struct Caller;
template <typename... P> struct Caller<void (*)(P...)> {
  struct Held { void (*function)(P...); void** values; };
  template <size_t... i> KF_RT static void pass(Held* h, std::index_sequence<i...>) {
    h->function(*(std::remove_reference_t<P>*)h->values[i]...);
  }
  KF_RT static void call(void* held) { pass((Held*)held, std::index_sequence_for<P...>()); }
  KF_RT static int launch(void (*function)(P...), const Launch* l, void** values) {
    Held held{function, values};
    return run(l, &call, &held);
  }
};
template <typename F> KF_RT static int launch(F function, const Launch* l, void** values) {
  return Caller<F>::launch(function, l, values);
}
}  // namespace kf

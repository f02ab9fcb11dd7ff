//@ base:
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>
#include <omp.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif
constexpr long W = @WIDTH@;
typedef float V __attribute__((vector_size(W * 4)));
typedef int32_t I __attribute__((vector_size(W * 4)));
typedef double D __attribute__((vector_size(W * 8)));
typedef int64_t L __attribute__((vector_size(W * 8)));
static inline long valid(long n) { return n >= W ? W : (n < 0 ? 0 : n); }
static inline V splat(float x) { return x - V{}; }
typedef std::make_integer_sequence<int, W> All;
template <int... i> static inline I numbered(std::integer_sequence<int, i...>) { return I{i...}; }
static inline I lanes() { return numbered(All()); }
static inline I splat_i(int32_t x) { return x - I{}; }
static inline V load(const float* p) { V v; std::memcpy(&v, p, sizeof v); return v; }
static inline void store(float* p, V v) { std::memcpy(p, &v, sizeof v); }
static inline V load_n(const float* p, long n) {
  if (n >= W) return load(p);
  if (n <= 0) return V{};
#if defined(__AVX512F__) && @WIDTH@ == 16
  return (V)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1u), p);
#else
  V v = {};
  std::memcpy(&v, p, n * sizeof(float));
  return v;
#endif
}
static inline void store_n(float* p, V v, long n) {
  if (n >= W) { store(p, v); return; }
  if (n <= 0) return;
#if defined(__AVX512F__) && @WIDTH@ == 16
  _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1u), (__m512)v);
#else
  std::memcpy(p, &v, n * sizeof(float));
#endif
}
static inline V bits(I v) { return (V)v; }
static inline I bits(V v) { return (I)v; }
static inline V vmax(V a, V b) { return ((a >= b) | (a != a)) ? a : b; }
static inline V vmin(V a, V b) { return ((a <= b) | (a != a)) ? a : b; }
// Limits that let NaN through: minps and maxps return their second operand then.
static inline V at_most(V x, float hi) {
#if defined(__AVX512F__) && @WIDTH@ == 16
  return (V)_mm512_min_ps(_mm512_set1_ps(hi), (__m512)x);
#elif defined(__AVX2__) && @WIDTH@ == 8
  return (V)_mm256_min_ps(_mm256_set1_ps(hi), (__m256)x);
#else
  return x > hi ? splat(hi) : x;
#endif
}
static inline V at_least(V x, float lo) {
#if defined(__AVX512F__) && @WIDTH@ == 16
  return (V)_mm512_max_ps(_mm512_set1_ps(lo), (__m512)x);
#elif defined(__AVX2__) && @WIDTH@ == 8
  return (V)_mm256_max_ps(_mm256_set1_ps(lo), (__m256)x);
#else
  return x < lo ? splat(lo) : x;
#endif
}
//@ stream: base
static inline void stream(float* p, V v) {
#if defined(__AVX512F__) && @WIDTH@ == 16
  if (((uintptr_t)p & 63) == 0) { _mm512_stream_ps(p, (__m512)v); return; }
#elif defined(__AVX2__) && @WIDTH@ == 8
  if (((uintptr_t)p & 31) == 0) { _mm256_stream_ps(p, (__m256)v); return; }
#endif
  store(p, v);
}
static inline void stream_n(float* p, V v, long n) { if (n >= W) stream(p, v); else store_n(p, v, n); }
static inline void stream_end() {
#if defined(__AVX2__)
  _mm_sfence();
#endif
}
//@ convert: base
template <typename T> static inline I load_index(const T* p, long n) {
#if defined(__AVX512F__) && @WIDTH@ == 16
  if constexpr (sizeof(T) == 1) {
    __m128i x = _mm_setzero_si128();
    if (n >= W) x = _mm_loadu_si128((const __m128i*)p);
    else std::memcpy(&x, p, valid(n));
    return (I)(std::is_signed<T>::value ? _mm512_cvtepi8_epi32(x) : _mm512_cvtepu8_epi32(x));
  }
#endif
  typedef T X __attribute__((vector_size(W * sizeof(T))));
  X x = {};
  std::memcpy(&x, p, valid(n) * sizeof(T));
  return __builtin_convertvector(x, I);
}
static inline I whole(V v) { return __builtin_convertvector(v, I); }
static inline I whole(I v) { return v; }
template <typename T, typename S> static inline void store_as(T* p, S v, long n) {
#if defined(__AVX512F__) && @WIDTH@ == 16
  if constexpr (sizeof(T) == 1) {
    const __m128i x = _mm512_cvtepi32_epi8((__m512i)whole(v));
    if (n >= W) _mm_storeu_si128((__m128i*)p, x);
    else std::memcpy(p, &x, valid(n));
    return;
  }
#endif
  typedef T X __attribute__((vector_size(W * sizeof(T))));
  const X x = __builtin_convertvector(whole(v), X);
  std::memcpy(p, &x, valid(n) * sizeof(T));
}
//@ strided: base
static inline V load_strided(const float* p, long stride, long n) {
  V v = {};
  for (long i = 0; i < (n < W ? n : W); ++i) v[i] = p[i * stride];
  return v;
}
template <typename T, typename S>
static inline void store_strided(T* p, long stride, S v, long n) {
  for (long i = 0; i < (n < W ? n : W); ++i) p[i * stride] = (T)v[i];
}
//@ PICK: base
// Elements of a tensor at computed places, 0 outside of its `n` elements.
static inline V PICK(const float* p, I at, long n) {
  const int32_t first = at[0];
  const I apart = at - splat_i(first) - lanes();
  int32_t odd = 0;
  for (long i = 0; i < W; ++i) odd |= apart[i];
  if (odd == 0 && first >= 0 && first + W <= n) return load(p + first);
#if defined(__AVX512F__) && @WIDTH@ == 16
  const int32_t end = n < 2147483647 ? (int32_t)n : 2147483647;
  const __m512i where = (__m512i)at;
  const __mmask16 inside = _mm512_cmplt_epu32_mask(where, _mm512_set1_epi32(end));
  return (V)_mm512_mask_i32gather_ps(_mm512_setzero_ps(), inside, where, p, 4);
#else
  V v = {};
  for (long i = 0; i < W; ++i) if (at[i] >= 0 && at[i] < n) v[i] = p[at[i]];
  return v;
#endif
}
template <typename T> static inline I PICK_I(const T* p, I at, long n) {
  I v = {};
  for (long i = 0; i < W; ++i) if (at[i] >= 0 && at[i] < n) v[i] = (int32_t)p[at[i]];
  return v;
}
//@ hfold: base
template <int D, int... i> static inline V swapped(V v, std::integer_sequence<int, i...>) {
  return __builtin_shuffle(v, I{(i ^ D)...});
}
template <int D = W / 2, typename F> static inline V hfold(V v, F f) {
  v = f(v, swapped<D>(v, All()));
  if constexpr (D > 1) return hfold<D / 2>(v, f);
  return v;
}
//@ hsum: hfold
static inline double hsum(V v) { return hfold(v, [](V a, V b) { return a + b; })[0]; }
//@ hindex: base
// Place of the extreme over n vectors of lanes: the first of equals, NaN beats everything.
static inline I hindex(const V* v, const I* at, int n, bool largest) {
  float b = v[0][0]; int32_t w = at[0][0];
  for (int k = 1; k < n * W; ++k) {
    const float x = v[k / W][k % W]; const int32_t i = at[k / W][k % W];
    const bool nan = x != x, had = b != b;
    const bool better = nan ? !had : !had && (largest ? x > b : x < b);
    if (better || (i < w && (x == b || (nan && had)))) { b = x; w = i; }
  }
  return splat_i(w == 2147483647 ? 0 : w);
}
//@ prefix: base
// Lanes moved up by D; `from` gives the ones that come in.
template <int D, int... i> static inline V up(V v, V from, std::integer_sequence<int, i...>) {
#if defined(__AVX512F__) && @WIDTH@ == 16
  return (V)_mm512_alignr_epi32((__m512i)v, (__m512i)from, 16 - D);
#else
  return __builtin_shuffle(v, from, I{(i >= D ? i - D : (int)W)...});
#endif
}
template <int D, int... i> static inline V down(V v, std::integer_sequence<int, i...>) {
#if defined(__AVX512F__) && @WIDTH@ == 16
  return (V)_mm512_alignr_epi32(_mm512_setzero_si512(), (__m512i)v, D);
#else
  return __builtin_shuffle(v, V{}, I{(i + D < W ? i + D : (int)W)...});
#endif
}
template <int D = 1> static inline V prefix_sum(V v) {
  v += up<D>(v, V{}, All());
  if constexpr (D * 2 < W) return prefix_sum<D * 2>(v);
  return v;
}
template <int D = 1> static inline V suffix_sum(V v) {
  v += down<D>(v, All());
  if constexpr (D * 2 < W) return suffix_sum<D * 2>(v);
  return v;
}
template <int D = 1> static inline V prefix_prod(V v) {
  v *= up<D>(v, splat(1.0f), All());
  if constexpr (D * 2 < W) return prefix_prod<D * 2>(v);
  return v;
}
//@ sqrt: base
static inline V sqrt_v(V x) {
#if defined(__AVX512F__) && @WIDTH@ == 16
  return (V)_mm512_sqrt_ps((__m512)x);
#elif defined(__AVX2__) && @WIDTH@ == 8
  return (V)_mm256_sqrt_ps((__m256)x);
#else
  V r; for (int i = 0; i < W; ++i) r[i] = std::sqrt(x[i]); return r;
#endif
}
//@ rsqrt: sqrt
static inline V rsqrt_v(V x) { return 1.0f / sqrt_v(x); }
//@ round: base
static inline V round_v(V x) {  // to nearest, ties to even; the sign of a zero is kept
  const V big = splat(12582912.0f);
  V a = bits(bits(x) & 0x7fffffff), r = (a + big) - big;
  r = bits(bits(r) | (bits(x) & (I)splat_i((int32_t)0x80000000)));
  return a < 4194304.0f ? r : x;
}
static inline V floor_v(V x) { V r = round_v(x); return r > x ? r - 1.0f : r; }
static inline V ceil_v(V x) { V r = round_v(x); return r < x ? r + 1.0f : r; }
static inline V trunc_v(V x) { return x < 0.0f ? ceil_v(x) : floor_v(x); }
//@ exp: base
// 2^n by exponent bits in two steps, so that overflow gives inf and underflow rounds to 0.
static inline V scale2(V p, I n) {
#if defined(__AVX512F__) && @WIDTH@ == 16
  return (V)_mm512_scalef_ps((__m512)p, _mm512_cvtepi32_ps((__m512i)n));
#else
  I h = n >> 1;
  return p * bits((h + 127) << 23) * bits((n - h + 127) << 23);
#endif
}
static inline V exp_v(V x) {  // < 1 ulp; exp(-inf) = 0, large = inf, NaN stays
  V c = at_least(at_most(x, 89.0f), -104.0f);
  const V magic = splat(12582912.0f);
  V t = c * 1.44269504f + magic;
  V n = t - magic;
  V r = c - n * 0.693145752f;
  r = r - n * 1.42860677e-6f;
  V p = r * 1.37805939e-3f + 8.37312452e-3f;
  p = p * r + 4.16695364e-2f;
  p = p * r + 1.66664720e-1f;
  p = p * r + 4.99999851e-1f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  I k = bits(t) - splat_i(0x4b400000);
  return scale2(p, k);
}
//@ expm1: exp
static inline V expm1_v(V x) {
  V c = at_least(at_most(x, 89.0f), -40.0f);
  const V magic = splat(12582912.0f);
  V t = c * 1.44269504f + magic;
  V n = t - magic;
  V r = c - n * 0.693145752f;
  r = r - n * 1.42860677e-6f;
  V p = r * 1.97350979e-4f + 1.39309070e-3f;
  p = p * r + 8.33343994e-3f;
  p = p * r + 4.16668020e-2f;
  p = p * r + 1.66666716e-1f;
  p = p * r + 4.99999970e-1f;
  V q = p * (r * r) + r;
  I k = bits(t) - splat_i(0x4b400000);
  V h = bits((k + 126) << 23);
  V y = 2.0f * (q * h + (h - 0.5f));
  y = x > 88.7228394f ? splat(HUGE_VALF) : y;
  y = ((x != x) | (x == 0.0f)) ? x : y;
  return y;
}
//@ log: base
static inline V log_v(V a) {
  I tiny = a < 1.17549435e-38f;
  V x = tiny ? a * 8388608.0f : a;
  I e = (bits(x) - splat_i(0x3f2aaaab)) & splat_i((int32_t)0xff800000);
  V m = bits(bits(x) - e);
  V i = __builtin_convertvector(e, V) * 1.19209290e-7f + (tiny ? splat(-23.0f) : splat(0.0f));
  V f = m - 1.0f, s = f * f;
  V r = splat(-0.130310059f), t = splat(0.140869141f);
  r = r * s - 0.121483512f;
  t = t * s + 0.139814854f;
  r = r * s - 0.166846126f;
  t = t * s + 0.200120345f;
  r = r * s - 0.249996200f;
  r = t * f + r;
  r = r * f + 0.333331972f;
  r = r * f - 0.5f;
  r = r * s + f;
  r = i * 0.693147182f + r;
  r = a == HUGE_VALF ? a : r;
  r = a == 0.0f ? splat(-HUGE_VALF) : r;
  return ((a < 0.0f) | (a != a)) ? splat(NAN) : r;
}
//@ log1p: log
static inline V log1p_v(V u) {
  V w = 1.0f + u;
  V r = log_v(w) + (u - (w - 1.0f)) / w;
  r = ((w == HUGE_VALF) | (w <= 0.0f)) ? log_v(w) : r;
  return u == 0.0f ? u : r;
}
//@ sigmoid: exp
static inline V sigmoid_v(V x) { return 1.0f / (1.0f + exp_v(-x)); }
//@ tanh: base
// Odd rational 13/6 on [-7.9, 7.9], as Eigen's; a few ulp.
static inline V tanh_v(V v) {
  V x = at_least(at_most(v, 7.90531111f), -7.90531111f), s = x * x;
  V p = s * -2.76076848e-16f + 2.00018790e-13f;
  p = p * s - 8.60467152e-11f;
  p = p * s + 5.12229709e-8f;
  p = p * s + 1.48572236e-5f;
  p = p * s + 6.37261929e-4f;
  p = p * s + 4.89352456e-3f;
  V q = s * 1.19825840e-6f + 1.18534706e-4f;
  q = q * s + 2.26843463e-3f;
  q = q * s + 4.89352519e-3f;
  return x * p / q;
}
//@ erf: base
// Odd rational 13/8 on [-4, 4], as Eigen's; a few ulp.
static inline V erf_v(V v) {
  V x = at_least(at_most(v, 4.0f), -4.0f), s = x * x;
  V p = s * -2.72614226e-10f + 2.77068142e-8f;
  p = p * s - 2.10102402e-6f;
  p = p * s - 5.69250639e-5f;
  p = p * s - 7.34990630e-4f;
  p = p * s - 2.95459980e-3f;
  p = p * s - 1.60960333e-2f;
  V q = s * -1.45660718e-5f - 2.13374055e-4f;
  q = q * s - 1.68282697e-3f;
  q = q * s - 7.37332916e-3f;
  q = q * s - 1.42647390e-2f;
  return x * p / q;
}
//@ sin: base
static inline V sin_v(V x) { V r; for (int i = 0; i < W; ++i) r[i] = std::sin(x[i]); return r; }
//@ cos: base
static inline V cos_v(V x) { V r; for (int i = 0; i < W; ++i) r[i] = std::cos(x[i]); return r; }
//@ pow: base
static inline V pow_v(V x, V y) { V r; for (int i = 0; i < W; ++i) r[i] = std::pow(x[i], y[i]); return r; }
//@ relu: base
static inline V relu_v(V x) { return at_least(x, 0.0f); }
//@ clamp: base
static inline V clamp_v(V x, float lo, float hi) {
  return at_most(at_least(x, lo), hi);
}
//@ abs: base
static inline V abs_v(V x) { return bits(bits(x) & 0x7fffffff); }
//@ sign: base
static inline V sign_v(V x) { return x > 0.0f ? splat(1.0f) : (x < 0.0f ? splat(-1.0f) : splat(0.0f)); }
//@ silu: sigmoid
static inline V silu_v(V x) { return x / (1.0f + exp_v(-x)); }
//@ gelu_erf: erf
static inline V gelu_erf_v(V x) { return 0.5f * x * (1.0f + erf_v(x * 0.707106781f)); }
//@ gelu_tanh: exp
// 0.5 (1 + tanh u) = 1 / (1 + exp(-2u)): one exp, no cancellation in the tail.
static inline V gelu_tanh_v(V x) {
  V u = x * (1.0f + 0.044715f * x * x) * -1.59576912f;
  V y = x / (1.0f + exp_v(u));
  return x == -HUGE_VALF ? splat(NAN) : y;
}
//@ softplus: exp log1p
static inline V softplus_v(V x, float beta, float threshold) {
  V z = x * beta;
  V y = log1p_v(exp_v(z)) / beta;
  return z > threshold ? x : y;
}
//@ mish: exp
// tanh(log(1+e)) = (e² + 2e) / (e² + 2e + 2) with e = exp(x).
static inline V mish_v(V x) {
  V e = exp_v(x > 20.0f ? splat(20.0f) : x), n = e * (e + 2.0f);
  V y = x * (n / (n + 2.0f));
  return x > 20.0f ? x : y;
}
//@ log_sigmoid: exp log1p abs
static inline V log_sigmoid_v(V x) {
  V low = x < 0.0f ? x : splat(0.0f);
  return low - log1p_v(exp_v(-abs_v(x)));
}
//@ elu: expm1
static inline V elu_v(V x, float alpha, float scale, float input) {
  V neg = expm1_v(x * input) * (alpha * scale);
  return x > 0.0f ? x * scale : neg;
}
//@ hardsigmoid: clamp
static inline V hardsigmoid_v(V x) { return clamp_v(x + 3.0f, 0.0f, 6.0f) * 0.166666667f; }
//@ hardswish: clamp
static inline V hardswish_v(V x) { return x * clamp_v(x + 3.0f, 0.0f, 6.0f) * 0.166666667f; }
//@ leaky_relu: base
static inline V leaky_relu_v(V x, float slope) { return x > 0.0f ? x : x * slope; }

constexpr int MR = @ROWS@, NV = @VECTORS@;
constexpr long NR = NV * W, MC = @BLOCK@;
// Columns [j, j + NR) of b, one row of NR floats for each k; zeros behind the last column.
static inline void pack(const float* b, long sk, long sn, long k, long left, float* to) {
  for (long p = 0; p < k; ++p, to += NR) {
    if (sn == 1) {
      for (int v = 0; v < NV; ++v) store(to + v * W, load_n(b + p * sk + v * W, left - v * W));
    } else {
      for (long j = 0; j < NR; ++j) to[j] = j < left ? b[p * sk + j * sn] : 0.0f;
    }
  }
}
static inline void pack_transposed(const float* b, long sn, long k, long left, float* to) {
  constexpr long T = 16;
  for (long p = 0; p < k; p += T) {
    const long end = p + T < k ? p + T : k;
    for (long j = 0; j < NR; ++j) {
      for (long q = p; q < end; ++q) to[q * NR + j] = j < left ? b[j * sn + q] : 0.0f;
    }
  }
}
template <int R, typename F>
static inline __attribute__((always_inline)) void tile(
    const float* a, long sm, long sk, const float* b, long k, F finish) {
  V acc[R][NV];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) acc[r][v] = V{};
  for (long p = 0; p < k; ++p, b += NR) {
    V y[NV];
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) y[v] = load(b + v * W);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const V x = splat(a[r * sm + p * sk]);
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) acc[r][v] += x * y[v];
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) finish(acc[r][v], r, v);
}

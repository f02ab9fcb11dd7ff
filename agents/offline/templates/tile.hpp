constexpr int MR = @ROWS@, NV = @VECTORS@;
constexpr long NR = NV * W;
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

constexpr long MC = @BLOCK@;
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

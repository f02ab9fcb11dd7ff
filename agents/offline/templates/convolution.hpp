// One spatial axis of a convolution.
struct Axis { long in, out, taps, stride, pad, dilation, step; };
// The taps that reach the outputs r, r + T, r + 2T, ... of an axis: output r + T j reads the input
// at j * move + from. Unless transposed, T is 1.
struct Taps {
  std::vector<long> at, from;
  long outputs, move, residue, apart;
};
static inline Taps taps(const Axis& a, bool transposed, long r) {
  Taps t;
  t.apart = transposed ? a.stride : 1;
  t.move = transposed ? 1 : a.stride;
  t.residue = r;
  t.outputs = a.out > r ? (a.out - r + t.apart - 1) / t.apart : 0;
  for (long k = 0; k < a.taps; ++k) {
    const long b = transposed ? r + a.pad - k * a.dilation : k * a.dilation - a.pad;
    if (b % t.apart != 0) continue;
    t.at.push_back(k);
    t.from.push_back(b / t.apart);
  }
  return t;
}
// One residue of each axis, and where its packed weights begin.
struct Part {
  Taps d, h, w;
  long depth, weights;
};
// Neighbouring outputs of one row that a panel holds from `lane` on.
struct Run { long lane, count, d, h, w; };
// `count` elements of a row from `at` on, zeros outside of it.
static inline void gather(const float* row, long at, long move, long extent, long count,
                          float* to) {
  if (move == 1 && count == NR && at >= 0 && at + NR <= extent) {
    for (int v = 0; v < NV; ++v) store(to + v * W, load(row + at + v * W));
    return;
  }
  if (move == 1) {
    const long first = at < 0 ? (-at < count ? -at : count) : 0;
    const long inside = extent - at < count ? extent - at : count;
    const long end = inside > first ? inside : first;
    for (long i = 0; i < first; ++i) to[i] = 0.0f;
    for (long i = first; i < end; ++i) to[i] = row[at + i];
    for (long i = end; i < count; ++i) to[i] = 0.0f;
    return;
  }
  for (long i = 0; i < count; ++i, at += move) to[i] = at >= 0 && at < extent ? row[at] : 0.0f;
}
// What the outputs of the runs read of one group's channels: a row of NR floats for each channel
// and tap.
static inline void columns(const float* x, long channels, long step, const Axis* axes,
                           const Part& part, const Run* runs, int count, float* to) {
  for (long c = 0; c < channels; ++c, x += step) {
    for (long fd : part.d.from) for (long fh : part.h.from) for (long fw : part.w.from) {
      for (int k = 0; k < count; ++k) {
        const Run& run = runs[k];
        const long d = run.d * part.d.move + fd, h = run.h * part.h.move + fh;
        const bool inside = d >= 0 && d < axes[0].in && h >= 0 && h < axes[1].in;
        const float* row = x + d * axes[0].step + h * axes[1].step;
        gather(row, run.w * part.w.move + fw, part.w.move, inside ? axes[2].in : 0, run.count,
               to + run.lane);
      }
      to += NR;
    }
  }
}
// Weights of one row of outputs, MR rows interleaved.
static inline void interleave(const float* f, long channels, long step, const Axis* axes,
                              const Part& part, float* to) {
  for (long c = 0; c < channels; ++c, f += step) {
    for (long d : part.d.at) for (long h : part.h.at) for (long w : part.w.at) {
      *to = f[(d * axes[1].taps + h) * axes[2].taps + w];
      to += MR;
    }
  }
}

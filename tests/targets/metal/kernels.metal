#include <metal_stdlib>
#include <metal_simdgroup>
using namespace metal;

constant float SCALE = 2.5;
constant constexpr uint WIDTH = 256;
constant float3 WEIGHTS = float3(0.5, 0.25, 0.125);

template <typename T> inline T twice(T v) { return v + v; }
static float group_sum(float v, threadgroup float* part, uint lane, uint group, uint groups) {
  v = simd_sum(v);
  if (lane == 0) part[group] = v;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float total = 0;
  for (uint k = 0; k < groups; ++k) total += part[k];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return total;
}

kernel void relu(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
                 constant uint& n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  if (i < n) y[i] = max(x[i], 0.0f);
}
kernel void gelu(const device float* x, device float* y, constant int& n, uint i [[thread_position_in_grid]]) {
  if ((int)i >= n) return;
  const float v = x[i], u = 0.7978845608 * (v + 0.044715 * v * v * v);
  y[i] = 0.5 * v * (1.0 + precise::tanh(u));
}
kernel void scaled(device const float4* x [[buffer(0)]], device float4* y [[buffer(1)]],
                   constant float& by [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  if (i < 250) y[i] = fma(x[i], float4(by), SCALE);
}
[[max_total_threads_per_threadgroup(256)]]
kernel void softmax(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant uint& n [[buffer(2)]],
                    uint row [[threadgroup_position_in_grid]], uint t [[thread_index_in_threadgroup]],
                    uint lane [[thread_index_in_simdgroup]], uint sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup float part[8];
  float top = -INFINITY;
  for (uint c = t; c < n; c += WIDTH) top = max(top, x[row * n + c]);
  top = simd_max(top);
  if (lane == 0) part[sg] = top;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (sg == 0) {
    top = simd_max(lane < 8 ? part[lane] : -INFINITY);
    if (lane == 0) part[0] = top;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  top = part[0];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float sum = 0;
  for (uint c = t; c < n; c += WIDTH) sum += fast::exp(x[row * n + c] - top);
  sum = group_sum(sum, part, lane, sg, 8);
  for (uint c = t; c < n; c += WIDTH) y[row * n + c] = exp(x[row * n + c] - top) / sum;
}
kernel void transpose(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant uint2& size [[buffer(2)]],
                      uint2 t [[thread_position_in_threadgroup]], uint2 g [[threadgroup_position_in_grid]]) {
  threadgroup float tile[16][16 + 1];
  const uint2 at = g * 16 + t;
  if (at.x < size.x && at.y < size.y) tile[t.y][t.x] = x[at.y * size.x + at.x];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const uint2 to = g.yx * 16 + t;
  if (to.x < size.y && to.y < size.x) y[to.y * size.y + to.x] = tile[t.x][t.y];
}
kernel void matmul(device const float* a [[buffer(0)]], device const float* b [[buffer(1)]], device float* c [[buffer(2)]],
                   constant int& M [[buffer(3)]], constant int& N [[buffer(4)]], constant int& K [[buffer(5)]],
                   uint3 gid [[threadgroup_position_in_grid]], uint3 tid [[thread_position_in_threadgroup]]) {
  threadgroup float left[8][8], right[8][8];
  const int row = gid.y * 8 + tid.y, column = gid.x * 8 + tid.x;
  float sum = 0.0f;
  for (int k = 0; k < K; k += 8) {
    left[tid.y][tid.x] = row < M && k + (int)tid.x < K ? a[row * K + k + tid.x] : 0;
    right[tid.y][tid.x] = k + (int)tid.y < K && column < N ? b[(k + tid.y) * N + column] : 0;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int j = 0; j < 8; ++j) sum = fma(left[tid.y][j], right[j][tid.x], sum);
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (row < M && column < N) c[row * N + column] = sum;
}
kernel void total(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant uint& n [[buffer(2)]],
                  threadgroup float* part [[threadgroup(0)]], uint t [[thread_position_in_threadgroup]],
                  uint size [[threads_per_threadgroup]]) {
  float v = 0;
  for (uint c = t; c < n; c += size) v += x[c];
  part[t] = v;
  for (uint d = size / 2; d > 0; d >>= 1) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (t < d) part[t] += part[t + d];
  }
  if (t == 0) y[0] = part[0];
}
kernel void histogram(device const int* x [[buffer(0)]], device atomic_uint* counts [[buffer(1)]], constant int& n [[buffer(2)]],
                      uint i [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup atomic_uint bins[16];
  if (t < 16) atomic_store_explicit(&bins[t], 0u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if ((int)i < n) atomic_fetch_add_explicit(&bins[x[i] & 15], 1, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (t < 16)
    atomic_fetch_add_explicit(&counts[t], atomic_load_explicit(&bins[t], memory_order_relaxed), memory_order_relaxed);
}
kernel void extremes(device const int* x [[buffer(0)]], device atomic_int* y [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  atomic_fetch_max_explicit(y, x[i], memory_order_relaxed);
  atomic_fetch_min_explicit(y + 1, x[i], memory_order_relaxed);
}
kernel void float_sum(device const float* x [[buffer(0)]], device atomic<float>* y [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  const float s = simd_sum(x[i]);
  if (simd_is_first()) atomic_fetch_add_explicit(y, s, memory_order_relaxed);
}
kernel void shuffles(device const int* x [[buffer(0)]], device int* y [[buffer(1)]], uint i [[thread_position_in_grid]],
                     ushort lane [[thread_index_in_simdgroup]]) {
  const int v = x[i];
  device int* to = y + i * 8;
  to[0] = simd_shuffle(v, 31 - lane);
  to[1] = simd_shuffle_xor(v, 1);
  to[2] = simd_shuffle_up(v, 2);
  to[3] = simd_shuffle_down(v, 3);
  to[4] = simd_broadcast(v, 5);
  to[5] = simd_prefix_inclusive_sum(v);
  to[6] = simd_prefix_exclusive_sum(v);
  to[7] = simd_broadcast_first(v) + (simd_any(v == 0) ? 10000 : 0) + (simd_all(v >= 0) ? 20000 : 0);
}
kernel void branches(device int* y [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  int s = 0;
  if (i < 10)
    s = simd_sum(1);
  else
    s = 100 * simd_sum(1);
  for (uint k = 0; k < i; k += 8)
    s += 1000 * simd_sum(1);
  y[i] = s + 1000000 * simd_sum(1);
}
kernel void halves(device const half* x [[buffer(0)]], device half* y [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  if (i < 1000) y[i] = clamp(x[i] * 1.5h, half(-1), half(1)) + exp(x[i]);
}
kernel void brains(device const bfloat* x [[buffer(0)]], device bfloat* y [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  if (i < 1000) y[i] = bfloat(float(x[i]) * 3.0f);
}
kernel void pixels(device const uchar4* x [[buffer(0)]], device float* y [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  const float3 c = float3(float4(x[i]).rgb) / 255.0;
  y[i] = dot(c, WEIGHTS) + (all(c > 0.1f) ? 1.0 : 0.0);
}
kernel void vectors(device const packed_float3* x [[buffer(0)]], device float* y [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  const float3 a = x[i], b = a.zxy;
  const float3 c = cross(a, b);
  y[i * 4] = dot(c, a);
  y[i * 4 + 1] = length(a) - distance(a, float3(0));
  y[i * 4 + 2] = select(a, b, a < b).x;
  y[i * 4 + 3] = mix(a.x, b.x, 0.25) + normalize(float2(3, 4)).y;
}
kernel void bits(device const uint* x [[buffer(0)]], device uint* y [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  const float f = as_type<float>(x[i] | 0x3f800000u);
  y[i] = popcount(x[i]) + clz(x[i]) * 100 + (as_type<uint>(f) == (x[i] | 0x3f800000u) ? 10000 : 0) + mulhi(x[i], 1u << 30);
}
kernel void cube(device int* y [[buffer(0)]], uint3 p [[thread_position_in_grid]], uint3 size [[threads_per_grid]],
                 uint3 groups [[threadgroups_per_grid]], uint width [[threads_per_simdgroup]]) {
  y[(p.z * size.y + p.y) * size.x + p.x] = p.x + 10 * p.y + 100 * p.z + 1000 * groups.z + 10000 * width;
}
struct Affine { float scale; float shift; };
kernel void affine(device float* y [[buffer(0)]], constant Affine& by [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  if (i < 1000) y[i] = y[i] * by.scale + by.shift;
}
template <typename T> [[kernel]] void doubled(device const T* x [[buffer(0)]], device T* y [[buffer(1)]], constant uint& n [[buffer(2)]],
                                              uint i [[thread_position_in_grid]]) {
  if (i < n) y[i] = twice<T>(x[i]);
}
template [[host_name("doubled_float")]] [[kernel]] void doubled<float>(device const float*, device float*, constant uint&, uint);
template [[host_name("doubled_half")]] [[kernel]] decltype(doubled<half>) doubled<half>;
kernel void layer_norm(device const float* x [[buffer(0)]], device const float* w [[buffer(1)]], device float* y [[buffer(2)]],
                       constant uint& n [[buffer(3)]], constant float& eps [[buffer(4)]], uint row [[threadgroup_position_in_grid]],
                       uint t [[thread_position_in_threadgroup]], uint lane [[thread_index_in_simdgroup]],
                       uint sg [[simdgroup_index_in_threadgroup]], uint groups [[simdgroups_per_threadgroup]]) {
  threadgroup float part[32];
  float s = 0, q = 0;
  for (uint c = t; c < n; c += groups * 32) s += x[row * n + c];
  const float mean = group_sum(s, part, lane, sg, groups) / n;
  for (uint c = t; c < n; c += groups * 32) q += pow(x[row * n + c] - mean, 2.0f);
  const float scale = rsqrt(group_sum(q, part, lane, sg, groups) / n + eps);
  for (uint c = t; c < n; c += groups * 32) y[row * n + c] = (x[row * n + c] - mean) * scale * w[c];
}
kernel void scan(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint t [[thread_index_in_threadgroup]],
                 uint lane [[thread_index_in_simdgroup]], uint sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup float sums[8];
  float v = simd_prefix_inclusive_sum(x[t]);
  if (lane == 31) sums[sg] = v;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint k = 0; k < sg; ++k) v += sums[k];
  y[t] = v;
}
kernel void neighbours(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup float s[32];
  s[t] = x[t];
  simdgroup_barrier(mem_flags::mem_threadgroup);
  y[t] = s[(t + 1) % 32];
}

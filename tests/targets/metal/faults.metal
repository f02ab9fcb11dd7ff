#include <metal_stdlib>
using namespace metal;
kernel void past_the_end(device float* y [[buffer(0)]], constant uint& n [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  if (i <= n) y[i] = 1;
}
kernel void before(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  y[i] =
      x[(int)i - 1];
}
kernel void vector_past(device float4* y [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  y[i] *= 2.0f;
}
kernel void shared_past(device float* y [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup float s[60];
  s[t] = 1;
  y[t] = s[t];
}
kernel void race(device float* y [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup float s[64];
  s[t] = t;

  y[t] = s[63 - t];
}
kernel void wrong_fence(device float* y [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup float s[64];
  s[t] = t;
  threadgroup_barrier(mem_flags::mem_device);
  y[t] = s[63 - t];
}
kernel void lockstep(device float* y [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup float s[64];
  s[t] = t;
  const float v = simd_sum(1.0f);
  y[t] = s[t ^ 1] + v;
}
kernel void same_place(device float* y [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
  y[t / 2] = t;
}
kernel void between_groups(device float* y [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  y[t % 64] += t;
}
kernel void mixed_atomic(device atomic_uint* y [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
  if (t < 32)
    atomic_fetch_add_explicit(y, 1u, memory_order_relaxed);
  else
    *(device uint*)y = t;
}
kernel void divergent(device float* y [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
  if (t < 48) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  y[t] = 1;
}
kernel void two_barriers(device float* y [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
  if (t < 32)
    threadgroup_barrier(mem_flags::mem_threadgroup);
  else
    threadgroup_barrier(mem_flags::mem_threadgroup);
  y[t] = 1;
}
kernel void zero(device int* y [[buffer(0)]], constant int& n [[buffer(1)]], uint t [[thread_index_in_threadgroup]]) {
  y[t] = t / n;
}
kernel void misaligned(device float* y [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
  if (t == 0) *(device float4*)(y + 1) = float4(0);
}
kernel void local(device float* y [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
  float r[4] = {1, 2, 3, 4};
  y[t] = r[t];
}
[[max_total_threads_per_threadgroup(32)]] kernel void crowded(device float* y [[buffer(0)]]) {
  y[0] = 1;
}
kernel void much(device float* y [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup float s[9000];
  s[t] = 0;
  y[t] = s[t];
}
kernel void on_data(device float* y [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup float s[64];
  s[t] = t;
  if (s[t] * s[t] > 1000.0f)
    threadgroup_barrier(mem_flags::mem_threadgroup);
  y[t] = s[63 - t];
}

//@ base:
typedef float V;
typedef int I;
// The element of a tensor at a computed place, 0 outside of its `n` elements.
#define PICK(p, at, n) (((at) >= 0 && (at) < (n)) ? (p)[at] : 0.0f)
#define PICK_I(p, at, n) (((at) >= 0 && (at) < (n)) ? (int)(p)[at] : 0)
FN V splat(float x) { return x; }
FN I splat_i(int x) { return x; }
FN V vmax(V a, V b) { return (a >= b || a != a) ? a : b; }
FN V vmin(V a, V b) { return (a <= b || a != a) ? a : b; }
FN V at_most(V x, float hi) { return x > hi ? hi : x; }
FN V at_least(V x, float lo) { return x < lo ? lo : x; }
// Whether the extreme x at i goes before b at w: the first of equals, NaN before everything.
FN int first_max(V x, I i, V b, I w) {
  const int nan = x != x, had = b != b;
  return nan ? (!had || i < w) : (!had && (x > b || (x == b && i < w)));
}
FN int first_min(V x, I i, V b, I w) {
  const int nan = x != x, had = b != b;
  return nan ? (!had || i < w) : (!had && (x < b || (x == b && i < w)));
}
//@ sqrt: base
FN V sqrt_v(V x) { return sqrtf(x); }
//@ rsqrt: base
FN V rsqrt_v(V x) { return 1.0f / sqrtf(x); }
//@ round: base
FN V round_v(V x) { return rintf(x); }
FN V floor_v(V x) { return floorf(x); }
FN V ceil_v(V x) { return ceilf(x); }
FN V trunc_v(V x) { return truncf(x); }
//@ exp: base
FN V exp_v(V x) { return expf(x); }
//@ expm1: base
FN V expm1_v(V x) { return expm1f(x); }
//@ log: base
FN V log_v(V x) { return logf(x); }
//@ log1p: base
FN V log1p_v(V x) { return log1pf(x); }
//@ sigmoid: base
FN V sigmoid_v(V x) { return 1.0f / (1.0f + expf(-x)); }
//@ tanh: base
FN V tanh_v(V x) { return tanhf(x); }
//@ erf: base
FN V erf_v(V x) { return erff(x); }
//@ sin: base
FN V sin_v(V x) { return sinf(x); }
//@ cos: base
FN V cos_v(V x) { return cosf(x); }
//@ pow: base
FN V pow_v(V x, V y) { return powf(x, y); }
//@ relu: base
FN V relu_v(V x) { return at_least(x, 0.0f); }
//@ clamp: base
FN V clamp_v(V x, float lo, float hi) { return at_most(at_least(x, lo), hi); }
//@ abs: base
FN V abs_v(V x) { return fabsf(x); }
//@ sign: base
FN V sign_v(V x) { return x > 0.0f ? 1.0f : (x < 0.0f ? -1.0f : 0.0f); }
//@ silu: base
FN V silu_v(V x) { return x / (1.0f + expf(-x)); }
//@ gelu_erf: base
FN V gelu_erf_v(V x) { return 0.5f * x * (1.0f + erff(x * 0.707106781f)); }
//@ gelu_tanh: base
// 0.5 (1 + tanh u) = 1 / (1 + exp(-2u)): one exp, no cancellation in the tail.
FN V gelu_tanh_v(V x) {
  const V u = x * (1.0f + 0.044715f * x * x) * -1.59576912f;
  return x == -HUGE_VALF ? NAN : x / (1.0f + expf(u));
}
//@ softplus: base
FN V softplus_v(V x, float beta, float threshold) {
  const V z = x * beta;
  return z > threshold ? x : log1pf(expf(z)) / beta;
}
//@ mish: base
// tanh(log(1+e)) = (e*e + 2e) / (e*e + 2e + 2) with e = exp(x).
FN V mish_v(V x) {
  const V e = expf(x > 20.0f ? 20.0f : x), n = e * (e + 2.0f);
  return x > 20.0f ? x : x * (n / (n + 2.0f));
}
//@ log_sigmoid: base
FN V log_sigmoid_v(V x) { return (x < 0.0f ? x : (x == x ? 0.0f : x)) - log1pf(expf(-fabsf(x))); }
//@ elu: base
FN V elu_v(V x, float alpha, float scale, float input) {
  return x > 0.0f ? x * scale : expm1f(x * input) * (alpha * scale);
}
//@ hardsigmoid: clamp
FN V hardsigmoid_v(V x) { return clamp_v(x + 3.0f, 0.0f, 6.0f) * 0.166666667f; }
//@ hardswish: clamp
FN V hardswish_v(V x) { return x * clamp_v(x + 3.0f, 0.0f, 6.0f) * 0.166666667f; }
//@ leaky_relu: base
FN V leaky_relu_v(V x, float slope) { return x > 0.0f ? x : x * slope; }

// What a kernel takes from CUDA, for a processor, and what only loops use. It stands before the prelude and needs
// no header. Functions are the C library's, and those of float32 that `vector_math.h` has.
#define __device__
#define __forceinline__ inline __attribute__((always_inline))
#define TOFU_INLINED __attribute__((always_inline))
#define TOFU_EXPORTED __attribute__((visibility("default")))

// Iterations of the next loop are independent: outputs lie over nothing but what their own element reads.
#ifdef __clang__
#define TOFU_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define TOFU_INDEPENDENT _Pragma("GCC ivdep")
#endif

inline double __longlong_as_double(long long bits) {
    double value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

namespace tofu {

#define TOFU_OF_ONE(name)                                                                  \
    __forceinline__ float name(float x) { return __builtin_##name##f(x); }                 \
    __forceinline__ double name(double x) { return __builtin_##name(x); }
__forceinline__ double exp(double x) { return __builtin_exp(x); }
__forceinline__ double log(double x) { return __builtin_log(x); }
__forceinline__ double log1p(double x) { return __builtin_log1p(x); }
__forceinline__ double tanh(double x) { return __builtin_tanh(x); }
__forceinline__ double erf(double x) { return __builtin_erf(x); }
#define TOFU_OF_TWO(name)                                                                  \
    __forceinline__ float name(float x, float y) { return __builtin_##name##f(x, y); }     \
    __forceinline__ double name(double x, double y) { return __builtin_##name(x, y); }
TOFU_OF_ONE(expm1) TOFU_OF_ONE(erfc) TOFU_OF_ONE(log2) TOFU_OF_ONE(log10)
TOFU_OF_ONE(sqrt) TOFU_OF_ONE(cbrt) TOFU_OF_ONE(fabs) TOFU_OF_ONE(floor) TOFU_OF_ONE(ceil) TOFU_OF_ONE(rint)
TOFU_OF_ONE(trunc) TOFU_OF_ONE(sin) TOFU_OF_ONE(cos) TOFU_OF_ONE(tan) TOFU_OF_ONE(asin) TOFU_OF_ONE(acos)
TOFU_OF_ONE(atan) TOFU_OF_ONE(sinh) TOFU_OF_ONE(cosh) TOFU_OF_ONE(asinh) TOFU_OF_ONE(acosh)
TOFU_OF_ONE(atanh) TOFU_OF_ONE(lgamma) TOFU_OF_ONE(tgamma)
TOFU_OF_TWO(atan2) TOFU_OF_TWO(pow) TOFU_OF_TWO(hypot) TOFU_OF_TWO(fmod) TOFU_OF_TWO(copysign)
__forceinline__ float rsqrt(float x) { return 1 / sqrt(x); }
__forceinline__ double rsqrt(double x) { return 1 / sqrt(x); }

// Combine the terms from `lower` on with the lanes: term `i` of them with lane `i % lanes`.
template <typename Reducer, typename T, int lanes, typename Index, typename Term>
__forceinline__ void add_to_lanes(T (&partial)[lanes], Index lower, Index upper, Term term) {
    Index at = lower;
    for (; at + lanes <= upper; at += lanes)
        for (int lane = 0; lane < lanes; ++lane) partial[lane] = Reducer::combine(partial[lane], T(term(at + lane)));
    for (int lane = 0; at < upper; ++lane, ++at) partial[lane] = Reducer::combine(partial[lane], T(term(at)));
}

// Combine all lanes, each with that half of the lanes away. Their number is a power of two.
template <typename Reducer, typename T, int lanes> __forceinline__ T combine_lanes(T (&partial)[lanes]) {
    for (int half = lanes / 2; half > 0; half /= 2)
        for (int lane = 0; lane < half; ++lane) partial[lane] = Reducer::combine(partial[lane], partial[lane + half]);
    return partial[0];
}

}  // namespace tofu

// Functions of float32 without branches or tables, so that a loop over them becomes vector instructions. A value is
// the same at every place of an array. Errors are below 2 units in the last place, those of erf below 3. exp, log and
// tanh are those of S. Moshier's Cephes library. Limits let NaN pass.
namespace tofu {

__forceinline__ int bits_of(float x) {
    int bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}
__forceinline__ float of_bits(int bits) {
    float x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}

// a b + c, rounded once if the processor can do that.
#ifdef __FMA__
__forceinline__ float multiply_add(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#else
__forceinline__ float multiply_add(float a, float b, float c) { return a * b + c; }
#endif

// The sum of coefficients times powers of x, the highest first.
template <int count> __forceinline__ float polynomial(float x, const float (&coefficients)[count]) {
    float sum = coefficients[0];
#pragma GCC unroll 16
    for (int i = 1; i < count; ++i) sum = multiply_add(sum, x, coefficients[i]);
    return sum;
}

// 2**n times a polynomial in x - n log(2). Added to 3 * 2**22, a number is rounded to an integer, which is then in the
// lowest bits. The power is two factors, because one may leave the range of float32.
__forceinline__ float exp(float x) {
    const float below = 130 < x ? 130 : x, near = -150 > below ? -150 : below;
    const float shifted = multiply_add(near, 1.44269504f, 12582912.0f), n = shifted - 12582912.0f;
    const float r = multiply_add(n, 2.12194440e-4f, multiply_add(n, -0.693359375f, near));
    const float tail = polynomial(r, {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f,
                                      1.6666665459e-1f, 5.0000001201e-1f});
    const int power = bits_of(shifted) - bits_of(12582912.0f), half = power >> 1;
    return (multiply_add(tail * r, r, r) + 1) * of_bits((half + 127) << 23) * of_bits((power - half + 127) << 23);
}

// log(m) + e log(2), where x = m 2**e and m is between the roots of 1/2 and of 2.
__forceinline__ float log(float x) {
    const bool small = x < 1.17549435e-38f;
    const int bits = bits_of(small ? x * 33554432.0f : x);
    const int whole = (bits - 0x3f3504f3) >> 23;
    const float f = of_bits(bits - (int)((unsigned)whole << 23)) - 1, e = float(whole - (small ? 25 : 0));
    const float z = f * f;
    float tail = f * z *
                 polynomial(f, {7.0376836292e-2f, -1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f,
                                1.4249322787e-1f, -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f,
                                3.3333331174e-1f});
    tail = tail + e * -2.12194440e-4f - 0.5f * z;
    const float result = f + tail + e * 0.693359375f;
    const float infinity = __builtin_inff();
    return x > 0 ? (x < infinity ? result : x) : x == 0 ? -infinity : __builtin_nanf("");
}

// log(1 + x), corrected for what 1 + x rounds off.
__forceinline__ float log1p(float x) {
    const float sum = 1 + x, result = log(sum);
    return sum == 1 ? x : sum - sum == 0 ? result * (x / (sum - 1)) : result;
}

__forceinline__ float tanh(float x) {
    const float size = __builtin_fabsf(x), z = x * x;
    const float tail = polynomial(z, {-5.70498872745e-3f, 2.06390887954e-2f, -5.37397155531e-2f,
                                      1.33314422036e-1f, -3.33332819422e-1f});
    const float near = multiply_add(size * z, tail, size), far = 1 - 2 / (exp(2 * size) + 1);
    return __builtin_copysignf(size < 0.625f ? near : far, x);
}

// Near 0 an odd polynomial. Elsewhere 1 - p**-8 with a polynomial p of the size of x, as in Abramowitz and Stegun,
// 7.1.28, which is 1 from 4 on. The coefficients minimise the largest relative error of erf (least squares with
// Lawson's weights): 4e-9 and 8e-9.
__forceinline__ float erf(float x) {
    const float size = __builtin_fabsf(x), z = x * x;
    const float near = x * polynomial(z, {7.18800777e-5f, -7.80579631e-4f, 5.16486380e-3f, -2.68414423e-2f,
                                          1.12832918e-1f, -3.76126005e-1f, 1.12837916f});
    const float root = 1 / polynomial(4 < size ? 4 : size, {6.22446468e-4f, -4.97172256e-3f, 2.27727057e-2f,
                                                            -4.72279920e-2f, 9.74051389e-2f, 2.61329508e-2f,
                                                            1.71732670e-1f, 9.93645135e-1f});
    const float square = root * root, fourth = square * square;
    return size < 1.1f ? near : __builtin_copysignf(1 - fourth * fourth, x);
}

}  // namespace tofu

// What every generated kernel uses: loads and stores, arithmetic with the language's semantics, reductions.
// Compiles with nvcc and NVRTC, and needs no header but those of the 16-bit types.
#ifdef TOFU_FLOAT16
#include <cuda_fp16.h>
#endif
#ifdef TOFU_BFLOAT16
#include <cuda_bf16.h>
#endif

#define TOFU_DEVICE __device__ __forceinline__

// A member's offset as a constant: NVRTC has neither offsetof nor the host compiler's built-in.
#ifdef __CUDACC_RTC__
#define TOFU_OFFSET(type, member) __INTADDR__(&((type*)0)->member)
#else
#define TOFU_OFFSET(type, member) __builtin_offsetof(type, member)
#endif

namespace tofu {

// Elements: float16 and bfloat16 are float32 in registers, integers are 64 bits wide.
TOFU_DEVICE float load(float element) { return element; }
TOFU_DEVICE double load(double element) { return element; }
TOFU_DEVICE long long load(int element) { return element; }
TOFU_DEVICE long long load(long long element) { return element; }
template <typename T> TOFU_DEVICE void store(float& element, T value) { element = static_cast<float>(value); }
template <typename T> TOFU_DEVICE void store(double& element, T value) { element = static_cast<double>(value); }
template <typename T> TOFU_DEVICE void store(int& element, T value) { element = static_cast<int>(value); }
template <typename T> TOFU_DEVICE void store(long long& element, T value) {
    element = static_cast<long long>(value);
}
#ifdef TOFU_FLOAT16
TOFU_DEVICE float load(__half element) { return __half2float(element); }
template <typename T> TOFU_DEVICE void store(__half& element, T value) {
    element = __float2half_rn(static_cast<float>(value));
}
#endif
#ifdef TOFU_BFLOAT16
TOFU_DEVICE float load(__nv_bfloat16 element) { return __bfloat162float(element); }
template <typename T> TOFU_DEVICE void store(__nv_bfloat16& element, T value) {
    element = __float2bfloat16_rn(static_cast<float>(value));
}
#endif

TOFU_DEVICE double infinity() { return __longlong_as_double(0x7ff0000000000000LL); }
TOFU_DEVICE double not_a_number() { return __longlong_as_double(0x7ff8000000000000LL); }
TOFU_DEVICE long long lowest_integer() { return -9223372036854775807LL - 1; }
TOFU_DEVICE long long highest_integer() { return 9223372036854775807LL; }

// The values [lower, upper) of an index variable.
struct Interval {
    long long lower, upper;
};

// How many positions the index variables have together.
template <typename Index, typename... Intervals> TOFU_DEVICE Index count(const Intervals&... intervals) {
    return (Index(1) * ... * (Index(intervals.upper) - Index(intervals.lower)));
}

// Take the fastest index variable off a position: its value is returned, `position` becomes that of the others.
template <typename Index> TOFU_DEVICE Index take(Index& position, const Interval& interval) {
    const Index length = Index(interval.upper) - Index(interval.lower);
    const Index value = Index(interval.lower) + position % length;
    position /= length;
    return value;
}

// The part [lower, lower + length) of a tensor that the kernel was given; strides count elements.
template <typename T, int rank> struct Input {
    const T* data;
    long long lower[rank], length[rank], stride[rank];

    template <typename Index> TOFU_DEVICE bool holds_axis(int axis, Index index) const {
        return index >= Index(lower[axis]) && index - Index(lower[axis]) < Index(length[axis]);
    }
    template <typename Index, typename... Indices> TOFU_DEVICE bool holds(Indices... indices) const {
        int axis = 0;
        return (holds_axis<Index>(axis++, indices) && ...);
    }
    template <typename Index, typename... Indices> TOFU_DEVICE auto at(Indices... indices) const {
        int axis = 0;
        Index offset = 0;
        ((offset += (Index(indices) - Index(lower[axis])) * Index(stride[axis]), ++axis), ...);
        return load(data[offset]);
    }
};
template <typename T> struct Input<T, 0> {
    const T* data;

    template <typename Index> TOFU_DEVICE bool holds() const { return true; }
    template <typename Index> TOFU_DEVICE auto at() const { return load(*data); }
};

// Memory for the elements of one output; indices count from the box's lower bounds.
template <typename T, int rank> struct Output {
    T* data;
    long long stride[rank];

    template <typename Index, typename Value, typename... Indices>
    TOFU_DEVICE void set(Value value, Indices... indices) const {
        int axis = 0;
        Index offset = 0;
        ((offset += Index(indices) * Index(stride[axis++])), ...);
        store(data[offset], value);
    }
};
template <typename T> struct Output<T, 0> {
    T* data;

    template <typename Index, typename Value> TOFU_DEVICE void set(Value value) const { store(*data, value); }
};

// An index that was computed from data: -1, which no tensor holds, if it does not fit its type.
// A value that is not a whole number sets `fault`.
template <typename Index> TOFU_DEVICE Index to_index(long long value, int&) {
    const Index index = static_cast<Index>(value);
    return index == value ? index : Index(-1);
}
template <typename Index> TOFU_DEVICE Index to_index(double value, int& fault) {
    if (!(value == floor(value) && value - value == 0)) {
        fault = 1;
        return Index(-1);
    }
    return value >= -9e18 && value <= 9e18 ? to_index<Index>(static_cast<long long>(value), fault) : Index(-1);
}
template <typename Index> TOFU_DEVICE Index to_index(float value, int& fault) {
    return to_index<Index>(static_cast<double>(value), fault);
}

// Whether no value is infinite or not a number.
template <typename... Values> TOFU_DEVICE bool finite(Values... values) { return ((values - values == 0) && ...); }

// Quotient and remainder round towards minus infinity. A zero divisor gives 0 and 0 for integers, as in NumPy.
template <typename T> TOFU_DEVICE T floor_quotient(T a, T b) {
    if (b == 0) return 0;
    const T quotient = a / b;
    return (a % b != 0 && (a < 0) != (b < 0)) ? quotient - 1 : quotient;
}
template <typename T> TOFU_DEVICE T floor_remainder(T a, T b) {
    if (b == 0) return 0;
    const T remainder = a % b;
    return (remainder != 0 && (remainder < 0) != (b < 0)) ? remainder + b : remainder;
}
template <typename T> TOFU_DEVICE T real_remainder(T a, T b) {
    const T remainder = fmod(a, b);
    if (remainder == 0) return copysign(T(0), b);
    return (remainder < 0) != (b < 0) ? remainder + b : remainder;
}
template <typename T> TOFU_DEVICE T real_quotient(T a, T b) {
    if (b == 0) return a / b;
    const T remainder = fmod(a, b);
    T quotient = (a - remainder) / b;
    if (remainder != 0 && (remainder < 0) != (b < 0)) quotient -= 1;
    if (quotient == 0) return copysign(T(0), a / b);
    const T whole = floor(quotient);
    return quotient - whole > T(0.5) ? whole + 1 : whole;
}
TOFU_DEVICE float floor_quotient(float a, float b) { return real_quotient(a, b); }
TOFU_DEVICE double floor_quotient(double a, double b) { return real_quotient(a, b); }
TOFU_DEVICE float floor_remainder(float a, float b) { return real_remainder(a, b); }
TOFU_DEVICE double floor_remainder(double a, double b) { return real_remainder(a, b); }

// base ** exponent for a whole exponent that is not negative.
template <typename T> TOFU_DEVICE T raise(T base, int exponent) {
    T result = 1;
    for (; exponent > 0; exponent >>= 1, base *= base)
        if (exponent & 1) result *= base;
    return result;
}

template <typename T> TOFU_DEVICE T square(T x) { return x * x; }
template <typename T> TOFU_DEVICE T absolute(T x) { return x < 0 ? -x : x; }
template <typename T> TOFU_DEVICE T sign(T x) { return x > 0 ? T(1) : x < 0 ? T(-1) : x; }
template <typename T> TOFU_DEVICE T maximum(T a, T b) { return a >= b || a != a ? a : b; }
template <typename T> TOFU_DEVICE T minimum(T a, T b) { return a <= b || a != a ? a : b; }
template <typename T> TOFU_DEVICE T relu(T x) { return maximum(x, T(0)); }
template <typename T> TOFU_DEVICE T sigmoid(T x) { return T(1) / (T(1) + exp(-x)); }
template <typename T> TOFU_DEVICE T softplus(T x) { return maximum(x, T(0)) + log1p(exp(-fabs(x))); }
// Squares (Widynski, 2020) keyed through SplitMix64: a random number in (0, 1) for a seed and a counter.
template <typename T> TOFU_DEVICE T uniform(T seed, T high, T low) {
    unsigned long long key = (unsigned long long)(long long)seed + 0x9E3779B97F4A7C15ull;
    key = (key ^ (key >> 30)) * 0xBF58476D1CE4E5B9ull;
    key = (key ^ (key >> 27)) * 0x94D049BB133111EBull;
    key = (key ^ (key >> 31)) | 1;
    unsigned long long counter = ((unsigned long long)(long long)high << 24) + (unsigned long long)(long long)low;
    unsigned long long y = counter * key, z = y + key, x = y;
    x = x * x + y;
    x = (x >> 32) | (x << 32);
    x = x * x + z;
    x = (x >> 32) | (x << 32);
    x = x * x + y;
    x = (x >> 32) | (x << 32);
    x = (x * x + z) >> 41;
    return T(2 * x + 1) * T(1.0 / (1 << 24));
}
// At their poles these functions are what SciPy's are.
template <typename T> TOFU_DEVICE T gamma_function(T x) {
    return x < 0 && x == floor(x) ? T(not_a_number()) : T(tgamma(x));
}
template <typename T> TOFU_DEVICE T log_gamma(T x) { return x < 0 && x - x != 0 ? x : T(lgamma(x)); }
// By reflection, recurrence up to 10 and the asymptotic series.
template <typename T> TOFU_DEVICE T digamma(T x) {
    if (x == 0) return -1 / x;
    if (x < 0 && x == floor(x)) return T(not_a_number());
    T result = 0;
    if (x < 0) {
        result = T(-3.14159265358979323846) / tan(T(3.14159265358979323846) * (x - rint(x)));
        x = 1 - x;
    }
    for (; x < 10; x += 1) result -= 1 / x;
    const T s = 1 / (x * x);
    const T series =
        s * (T(1) / 12 -
             s * (T(1) / 120 - s * (T(1) / 252 - s * (T(1) / 240 - s * (T(1) / 132 - s * T(691) / 32760)))));
    return result + log(x) - T(0.5) / x - series;
}

struct Sum {
    template <typename T> static TOFU_DEVICE T combine(T a, T b) { return a + b; }
};
struct Prod {
    template <typename T> static TOFU_DEVICE T combine(T a, T b) { return a * b; }
};
struct Max {
    template <typename T> static TOFU_DEVICE T combine(T a, T b) { return maximum(a, b); }
};
struct Min {
    template <typename T> static TOFU_DEVICE T combine(T a, T b) { return minimum(a, b); }
};

#ifdef TOFU_BLOCK_THREADS
constexpr unsigned block_threads = TOFU_BLOCK_THREADS;

// One value of every thread combined, in the same order every time; blockDim.x is a power of two up to
// block_threads. All threads of the block take part and all get the result.
template <typename Reducer, typename T> __device__ T combine_block(T value) {
    __shared__ T values[block_threads];
    values[threadIdx.x] = value;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            values[threadIdx.x] = Reducer::combine(values[threadIdx.x], values[threadIdx.x + half]);
        __syncthreads();
    }
    const T result = values[0];
    __syncthreads();
    return result;
}
#endif

}  // namespace tofu

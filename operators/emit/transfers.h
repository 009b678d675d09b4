// What kernels that move data share: boxes of words, spread over blocks, read through strides.

namespace tofu {

constexpr int most_axes = TOFU_AXES;
// Of a thread: words that are copied, all read before any is written; words that are reduced, each with so
// many terms at once, so that reads from several devices are under way together.
enum : int { copied_words = TOFU_COPIED_WORDS, reduced_words = TOFU_REDUCED_WORDS, terms_at_once = 4 };

// An axis of a box; the quotient of less than 2^31 by its length is a product and a shift.
struct Axis {
    long long length;
    unsigned multiplier, shift;
};
TOFU_DEVICE int quotient(int position, const Axis& axis) {
    return int((unsigned long long)(unsigned)position * axis.multiplier >> axis.shift);
}
TOFU_DEVICE long long quotient(long long position, const Axis& axis) { return position / axis.length; }

// A box of memory that is written, from `first_block` on: `count` words of `width` bytes, strides in bytes.
struct Cell {
    char* target;
    long long first_block, count;
    int rank, width;
    Axis axes[most_axes];
    long long strides[most_axes];
};

// Memory that is read for a cell, word by word.
struct Source {
    const char* data;
    long long strides[most_axes];
};

// Whose block this is; cells that are not used start behind the last block.
template <int cells> TOFU_DEVICE int cell_number(const Cell (&cell)[cells]) {
    int number = 0;
    while (number + 1 < cells && (long long)blockIdx.x >= cell[number + 1].first_block) ++number;
    return number;
}

// Where a thread's words lie from the start of memory with these strides; the last word's place for those
// behind it.
template <int words_each, typename Index>
TOFU_DEVICE void each_place(const Cell& cell, const long long* strides, const Index* at, Index* offset) {
    Index rest[words_each];
#pragma unroll
    for (int word = 0; word < words_each; ++word) {
        rest[word] = at[word] < Index(cell.count) ? at[word] : Index(cell.count) - 1;
        offset[word] = 0;
    }
    for (int number = cell.rank - 1; number > 0; --number) {
        const Axis& axis = cell.axes[number];
        const Index length = Index(axis.length), stride = Index(strides[number]);
#pragma unroll
        for (int word = 0; word < words_each; ++word) {
            const Index outer = quotient(rest[word], axis);
            offset[word] += (rest[word] - outer * length) * stride;
            rest[word] = outer;
        }
    }
#pragma unroll
    for (int word = 0; word < words_each; ++word) offset[word] += rest[word] * Index(strides[0]);
}
template <int words> TOFU_DEVICE void places(const Cell& cell, const long long* strides, const int* at, int* offset) {
    each_place<words>(cell, strides, at, offset);
}
// Rarely needed, and long: inlined wherever memory is accessed, it would take seconds to compile.
template <int words>
__device__ __noinline__ void places(const Cell& cell, const long long* strides, const long long* at, long long* offset) {
    each_place<words>(cell, strides, at, offset);
}

// The words of this thread: neighbouring threads have neighbouring words.
template <typename Index, int words_each> struct Words {
    Index at[words_each];

    explicit TOFU_DEVICE Words(const Cell& cell) {
        const Index block = Index((long long)blockIdx.x - cell.first_block);
        const Index start = block * Index(words_each * block_threads) + Index(threadIdx.x);
#pragma unroll
        for (int word = 0; word < words_each; ++word) at[word] = start + word * Index(block_threads);
    }
    TOFU_DEVICE bool inside(const Cell& cell, int word) const { return at[word] < Index(cell.count); }
};

// `count` elements that are read and written at once.
template <typename T, int count> struct alignas(sizeof(T) * count) Pack {
    T element[count];
};

template <typename Word, typename Index, int count>
TOFU_DEVICE void read(const Cell& cell, const Source& source, const Words<Index, count>& words, Word (&value)[count]) {
    Index offset[count];
    places<count>(cell, source.strides, words.at, offset);
#pragma unroll
    for (int word = 0; word < count; ++word)
        if (words.inside(cell, word)) value[word] = *reinterpret_cast<const Word*>(source.data + offset[word]);
}
template <typename Word, typename Index, int count>
TOFU_DEVICE void write(const Cell& cell, const Words<Index, count>& words, const Word (&value)[count]) {
    Index offset[count];
    places<count>(cell, cell.strides, words.at, offset);
#pragma unroll
    for (int word = 0; word < count; ++word)
        if (words.inside(cell, word)) *reinterpret_cast<Word*>(cell.target + offset[word]) = value[word];
}

// Each word of a cell from its one source.
template <typename Index, typename Word> TOFU_DEVICE void copy_words(const Cell& cell, const Source& source) {
    const Words<Index, copied_words> words(cell);
    Word value[copied_words];
    read(cell, source, words, value);
    write(cell, words, value);
}
template <typename Index, typename Parameters> TOFU_DEVICE void copy(const Parameters& p) {
    const int number = cell_number(p.cells);
    const Cell& cell = p.cells[number];
    const Source& source = p.sources[number];
    switch (cell.width) {
        case 16: return copy_words<Index, Pack<unsigned, 4>>(cell, source);
        case 8: return copy_words<Index, Pack<unsigned, 2>>(cell, source);
        case 4: return copy_words<Index, unsigned>(cell, source);
        case 2: return copy_words<Index, unsigned short>(cell, source);
        default: return copy_words<Index, unsigned char>(cell, source);
    }
}

// Each element of a cell: those of its sources combined in their order, rounded once.
template <typename Index, typename T, typename Total, typename Reducer, int count>
TOFU_DEVICE void reduce_words(const Cell& cell, const Source* sources, int terms) {
    const Words<Index, reduced_words> words(cell);
    Pack<T, count> value[terms_at_once][reduced_words] = {};
    Total total[reduced_words][count] = {};
    for (int first = 0; first < terms; first += terms_at_once) {
#pragma unroll
        for (int term = 0; term < terms_at_once; ++term)
            if (first + term < terms) read(cell, sources[first + term], words, value[term]);
#pragma unroll
        for (int term = 0; term < terms_at_once; ++term) {
            if (first + term >= terms) break;
#pragma unroll
            for (int word = 0; word < reduced_words; ++word)
#pragma unroll
                for (int i = 0; i < count; ++i) {
                    const Total element = Total(load(value[term][word].element[i]));
                    Total& sum = total[word][i];
                    sum = first + term == 0 ? element : Reducer::combine(sum, element);
                }
        }
    }
#pragma unroll
    for (int word = 0; word < reduced_words; ++word)
#pragma unroll
        for (int i = 0; i < count; ++i) store(value[0][word].element[i], total[word][i]);
    write(cell, words, value[0]);
}
template <typename Index, typename T, typename Total, typename Reducer, typename Parameters>
TOFU_DEVICE void reduce(const Parameters& p) {
    const int number = cell_number(p.cells), terms = int(p.terms);
    const Cell& cell = p.cells[number];
    const Source* sources = p.sources + number * terms;
    constexpr int size = int(sizeof(T));
    switch (cell.width / size) {
        case 8: return reduce_words<Index, T, Total, Reducer, size <= 2 ? 8 : 1>(cell, sources, terms);
        case 4: return reduce_words<Index, T, Total, Reducer, size <= 4 ? 4 : 1>(cell, sources, terms);
        case 2: return reduce_words<Index, T, Total, Reducer, 2>(cell, sources, terms);
        default: return reduce_words<Index, T, Total, Reducer, 1>(cell, sources, terms);
    }
}

// Each word of a cell from a pattern, which is as long as the longest element.
template <typename Index, typename Word> TOFU_DEVICE void fill_words(const Cell& cell, const Word& pattern) {
    const Words<Index, copied_words> words(cell);
    Word value[copied_words];
#pragma unroll
    for (int word = 0; word < copied_words; ++word) value[word] = pattern;
    write(cell, words, value);
}
template <typename Index, typename Parameters> TOFU_DEVICE void fill(const Parameters& p) {
    const Cell& cell = p.cells[cell_number(p.cells)];
    const unsigned low = unsigned(p.pattern), high = unsigned(p.pattern >> 32);
    switch (cell.width) {
        case 16: return fill_words<Index>(cell, Pack<unsigned, 4>{{low, high, low, high}});
        case 8: return fill_words<Index>(cell, Pack<unsigned, 2>{{low, high}});
        case 4: return fill_words<Index>(cell, low);
        default: return fill_words<Index>(cell, static_cast<unsigned short>(low));
    }
}

}  // namespace tofu

// Run a list of calls of functions whose arguments are known. The structs and the numbers of forms are those of
// call_list.py and of c_run.py.

namespace {

enum Form : long long { of_struct = 0, one_thread = 1, count = 2 };

struct Call {
    long long form, step, size;
    void* words[];
};

struct List {
    Call* calls;
    long long count;
    volatile long long* running;
    const volatile long long* stopping;
    long long status;
};

// An axis of what is copied: its length, and the bytes between neighbours that are written and read.
struct Axis {
    long long length, written, read;
};

template <typename Function> Function as(void* word) { return reinterpret_cast<Function>(word); }

int with_one_thread(void* const* words) {
    const auto threads = as<int (*)()>(words[5]);
    const auto set_threads = as<void (*)(int)>(words[6]);
    const int before = threads();
    if (before != 1) set_threads(1);
    const int number = int(as<long long>(words[3]));
    const int status = as<int (*)(void*, void*, int, void*)>(words[0])(words[1], words[2], number, words[4]);
    if (before != 1) set_threads(before);
    return status;
}

void copy_run(char* target, const char* source, long long run) { __builtin_memcpy(target, source, run); }

void copy_axes(char* target, const char* source, long long run, const Axis* axes, long long rank) {
    if (!rank) return copy_run(target, source, run);
    const Axis& outer = axes[rank - 1];
    for (long long each = 0; each < outer.length; ++each)
        copy_axes(target + each * outer.written, source + each * outer.read, run, axes, rank - 1);
}

void copy(void* const* words) {
    const auto target = as<char*>(words[0]);
    const auto source = as<const char*>(words[1]);
    const auto run = as<long long>(words[2]), rank = as<long long>(words[3]);
    copy_axes(target, source, run, reinterpret_cast<const Axis*>(words + 4), rank);
}

}  // namespace

// Returns the number of calls that succeeded: not all if one fails, or if `stopping` points to a number other
// than 0. The memory of `running` holds the number of the step that runs.
extern "C" __attribute__((visibility("default"))) long long tofu_run_calls(List* list) {
    Call* call = list->calls;
    long long done = 0;
    for (; done < list->count && !*list->stopping; ++done) {
        Call* next = reinterpret_cast<Call*>(call->words + call->size);
        *list->running = call->step;
        switch (call->form) {
            case of_struct: as<void (*)(void*)>(call->words[0])(call->words + 1); break;
            case one_thread:
                if ((list->status = with_one_thread(call->words))) return done;
                break;
            case count: *as<long long*>(call->words[0]) += as<long long>(call->words[1]); break;
            default: copy(call->words);
        }
        call = next;
    }
    return done;
}

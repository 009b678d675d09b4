// Run a list of calls of functions whose arguments are known. The structs and the numbers of forms are those of
// call_list.py and of c_run.py.

namespace {

enum Form : long long { of_struct = 0, one_thread = 1 };

struct Call {
    long long form, step;
    void* words[7];
};

struct List {
    const Call* calls;
    long long count;
    volatile long long* running;
    long long status;
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

}  // namespace

// Returns the number of calls that succeeded. The memory of `running` holds the number of the step that runs.
extern "C" __attribute__((visibility("default"))) long long tofu_run_calls(List* list) {
    for (long long done = 0; done < list->count; ++done) {
        const Call& call = list->calls[done];
        *list->running = call.step;
        switch (call.form) {
            case of_struct: as<void (*)(void*)>(call.words[0])(call.words[1]); break;
            case one_thread:
                if ((list->status = with_one_thread(call.words))) return done;
                break;
            default: *as<long long*>(call.words[0]) += as<long long>(call.words[1]);
        }
    }
    return list->count;
}

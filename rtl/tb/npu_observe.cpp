// Retirement records and digests: the DPI functions that npu_observe.sv imports.
//
// A record is 32 bytes, little-endian: engine and index (32 bits each), start cycle, end cycle and digest
// (64 bits each). accelsim/cosim/records.py reads the file; accelsim/spec/digest.py defines the digest.
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <deque>

namespace {

constexpr int kEngines = 4;
constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15ull;
constexpr uint64_t kWordsPerRow = 64;

struct Record {
  uint32_t engine;
  uint32_t index;
  uint64_t start;
  uint64_t end;
  uint64_t digest;
};
static_assert(sizeof(Record) == 32, "the file format has no padding");

struct Burst {
  uint64_t address;  // of its next beat
  uint32_t beats;    // left
};

FILE* file = nullptr;
std::deque<Burst> bursts;  // whose data has not all been sent
uint64_t digests[kEngines];

}  // namespace

extern "C" {

// Called by the server through ctypes.
int npu_observe_open(const char* path) {
  if (file != nullptr) std::fclose(file);
  file = std::fopen(path, "wb");
  return file == nullptr ? errno : 0;
}

void npu_observe_close(void) {
  if (file != nullptr) std::fclose(file);
  file = nullptr;
  bursts.clear();
}

// Called by npu_observe.sv.
void npu_observe_start(uint32_t engine) { digests[engine] = 0; }

// `words` 32-bit words of one row that an engine wrote at `address`.
void npu_observe_row(uint32_t engine, uint64_t address, uint32_t words, const uint32_t* row) {
  const uint64_t first = address * kWordsPerRow + 1;
  uint64_t sum = 0;
  for (uint32_t j = 0; j < words; j++) {
    sum += row[j] * ((first + j) * kMultiplier | 1);
  }
  digests[engine] += sum;
}

void npu_observe_acc_row(uint32_t engine, uint64_t address, uint32_t words, const uint32_t* row) {
  npu_observe_row(engine, address, words, row);
}

// A write burst whose first beat has number `address`; its data comes through npu_observe_beat.
void npu_observe_burst(uint64_t address, uint32_t beats) { bursts.push_back({address, beats}); }

void npu_observe_beat(uint32_t engine, uint32_t words, const uint32_t* row) {
  if (bursts.empty()) return;
  npu_observe_row(engine, bursts.front().address++, words, row);
  if (--bursts.front().beats == 0) bursts.pop_front();
}

void npu_observe_retire(uint32_t engine, uint32_t index, uint64_t start, uint64_t end) {
  if (file == nullptr) return;
  const Record record{engine, index, start, end, digests[engine]};
  std::fwrite(&record, sizeof record, 1, file);
  std::fflush(file);  // an assertion may end the process in any cycle
}
}

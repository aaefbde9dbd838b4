// Implementation of axi_memory.h and of the DPI functions that axi_memory.sv imports.
#include "axi_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <vector>

namespace {

constexpr uint32_t kMaxBeatBytes = 32;
constexpr uint32_t kSlvErr = 2;
constexpr uint32_t kDecErr = 3;

// Bits of `fire` and `pins`; axi_memory.sv has the same numbers.
enum Fire { kAr = 1, kAw = 2, kW = 4, kWLast = 8, kRStall = 16, kBStall = 32 };
enum Pins {
  kArReady = 1 << 0,
  kAwReady = 1 << 1,
  kWReady = 1 << 2,
  kRValid = 1 << 3,
  kRLast = 1 << 4,
  kRResp = 5,
  kBValid = 1 << 7,
  kBResp = 8,
  kRId = 10,
  kBId = 14,
  kBusy = 1 << 18,
  kLastWrong = 1 << 19,
};

struct Beat {
  uint8_t data[kMaxBeatBytes];
  uint32_t strobe;
};

struct Request {
  uint64_t due;  // first cycle in which service may start
  uint64_t address;
  uint32_t beats;
  uint32_t id;
  bool write;
  std::vector<Beat> data;
};

struct Response {
  uint64_t due;
  uint32_t id;
  uint32_t resp;
};

struct Memory {
  uint8_t* bytes = nullptr;
  uint64_t size = 0;
  uint64_t origin = 0;
  AxiMemoryOptions options{2, 256, 1, 0, 0, 0, 0, 0, 0, 0, 0};
  AxiMemoryCounters counters{};
  uint64_t random = 1;
  bool fresh = true;  // no request since configure: nothing random yet, so that runs replay
  uint32_t beat_bytes = 16;

  std::deque<Request> addresses;  // AW handshakes whose data is not complete
  std::deque<std::vector<Beat>> complete;  // data whose AW has not come
  std::vector<Beat> collecting;
  std::deque<Request> queue;
  std::deque<Response> responses;
  Request current{};
  uint32_t beat = 0;      // next beat of `current`
  bool serving = false;
  uint32_t worst = 0;     // response of the write in service
  uint32_t pins = kArReady | kAwReady | kWReady;
};

Memory memory;

uint64_t next_random() {
  uint64_t x = memory.random;
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  memory.random = x;
  return x * 0x2545F4914F6CDD1Dull >> 32;
}

bool chance(uint64_t of_256) { return of_256 != 0 && (next_random() & 255) < of_256; }

uint64_t up_to(uint64_t maximum) { return maximum == 0 ? 0 : next_random() % (maximum + 1); }

bool stalls_on() {
  const AxiMemoryOptions& o = memory.options;
  return o.ready_stall || o.r_gap || o.b_delay_max || o.latency_extra_max;
}

uint32_t response_of(uint64_t address, bool write) {
  const AxiMemoryOptions& o = memory.options;
  const uint64_t offset = address - memory.origin;
  if (address < memory.origin || offset + memory.beat_bytes > memory.size) return kDecErr;
  const bool window = address + memory.beat_bytes > o.error_low && address < o.error_high;
  return window && (write ? o.error_writes : o.error_reads) ? kSlvErr : 0;
}

void enqueue(Request&& request, uint64_t cycle) {
  request.due = cycle + memory.options.latency + up_to(memory.options.latency_extra_max);
  memory.queue.push_back(std::move(request));
  if (memory.queue.size() > memory.counters.queue_peak) {
    memory.counters.queue_peak = memory.queue.size();
  }
}

Request unpack(uint64_t word, bool write) {
  Request request{};
  request.address = word & ((1ull << 40) - 1);
  request.beats = static_cast<uint32_t>(word >> 40 & 0xff) + 1;
  request.id = static_cast<uint32_t>(word >> 48 & 0xf);
  request.write = write;
  return request;
}

// Joins addresses and data of writes; false where WLAST came at the wrong beat.
bool join_writes(uint64_t cycle) {
  bool right = true;
  while (!memory.addresses.empty() && !memory.complete.empty()) {
    Request request = std::move(memory.addresses.front());
    memory.addresses.pop_front();
    request.data = std::move(memory.complete.front());
    memory.complete.pop_front();
    right = right && request.data.size() == request.beats;
    request.data.resize(request.beats);
    enqueue(std::move(request), cycle);
  }
  if (!memory.addresses.empty() && memory.collecting.size() >= memory.addresses.front().beats) {
    right = false;  // a beat that should have been the last one was not
  }
  return right;
}

void read_beat(uint64_t address, uint32_t* pins, uint32_t* out) {
  const uint32_t resp = response_of(address, false);
  if (resp == 0) {
    std::memcpy(out, memory.bytes + (address - memory.origin), memory.beat_bytes);
  } else {
    std::memset(out, 0xe5, memory.beat_bytes);
    memory.counters.error_beats++;
  }
  *pins |= resp << kRResp;
  memory.counters.read_beats++;
}

void write_beat(uint64_t address, const Beat& beat) {
  const uint32_t resp = response_of(address, true);
  if (resp > memory.worst) memory.worst = resp;
  memory.counters.write_beats++;
  if (resp != 0) {
    memory.counters.error_beats++;
    return;
  }
  uint8_t* target = memory.bytes + (address - memory.origin);
  if (beat.strobe == static_cast<uint32_t>((1ull << memory.beat_bytes) - 1)) {
    std::memcpy(target, beat.data, memory.beat_bytes);
    return;
  }
  for (uint32_t i = 0; i < memory.beat_bytes; i++) {
    if (beat.strobe >> i & 1) target[i] = beat.data[i];
  }
}

// What the server does in cycle `cycle`; returns the R pins.
uint32_t serve(uint64_t cycle, uint32_t* rdata) {
  if (!memory.serving) {
    if (memory.queue.empty() || memory.queue.front().due > cycle) return 0;
    memory.current = std::move(memory.queue.front());
    memory.queue.pop_front();
    memory.serving = true;
    memory.beat = 0;
    memory.worst = 0;
  }
  Request& request = memory.current;
  if (!request.write && chance(memory.options.r_gap)) return 0;
  // Beats lie at aligned addresses; only the first may start within one.
  const uint64_t aligned = request.address & ~static_cast<uint64_t>(memory.beat_bytes - 1);
  const uint64_t address = aligned + static_cast<uint64_t>(memory.beat) * memory.beat_bytes;
  const bool last = memory.beat + 1 == request.beats;
  uint32_t pins = 0;
  if (request.write) {
    write_beat(address, request.data[memory.beat]);
  } else {
    pins = kRValid | (last ? kRLast : 0) | request.id << kRId;
    read_beat(address, &pins, rdata);
  }
  memory.beat++;
  if (last) {
    memory.serving = false;
    if (request.write) {
      const uint64_t due = cycle + 1 + up_to(memory.options.b_delay_max);
      memory.responses.push_back({due, request.id, memory.worst});
      memory.counters.write_bursts++;
    } else {
      memory.counters.read_bursts++;
    }
  }
  return pins;
}

uint32_t respond(uint64_t cycle) {
  if (memory.responses.empty() || memory.responses.front().due > cycle) return 0;
  const Response response = memory.responses.front();
  memory.responses.pop_front();
  return kBValid | response.resp << kBResp | response.id << kBId;
}

uint32_t ready_pins() {
  const size_t waiting = memory.queue.size() + memory.addresses.size() + memory.complete.size();
  // Two requests may come in one cycle, so ready falls one place early.
  const bool room = waiting + 2 <= memory.options.queue_depth;
  uint32_t pins = kWReady;
  if (room) pins |= kArReady | kAwReady;
  if (memory.complete.size() >= memory.options.queue_depth) pins &= ~kWReady;
  if (memory.fresh) return pins;
  for (uint32_t bit : {kArReady, kAwReady, kWReady}) {
    if (chance(memory.options.ready_stall)) {
      pins &= ~bit;
      memory.counters.not_ready_cycles++;
    }
  }
  return pins;
}

}  // namespace

extern "C" {

int axi_memory_map(const char* path, uint64_t origin, uint64_t bytes) {
  int file = -1;
  int flags = MAP_SHARED;
  if (path[0] == '\0') {
    flags |= MAP_ANONYMOUS;
  } else {
    file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) return errno;
    const off_t length = lseek(file, 0, SEEK_END);
    if (length < static_cast<off_t>(bytes) && ftruncate(file, static_cast<off_t>(bytes)) != 0) {
      const int failed = errno;
      close(file);
      return failed;
    }
  }
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file, 0);
  const int failed = errno;
  if (file >= 0) close(file);
  if (mapped == MAP_FAILED) return failed;
  if (memory.bytes != nullptr) munmap(memory.bytes, memory.size);
  memory.bytes = static_cast<uint8_t*>(mapped);
  memory.size = bytes;
  memory.origin = origin;
  return 0;
}

uint8_t* axi_memory_pointer(void) { return memory.bytes; }

uint64_t axi_memory_bytes(void) { return memory.size; }

void axi_memory_configure(const AxiMemoryOptions* options) {
  memory.options = *options;
  memory.random = options->seed * 0x9E3779B97F4A7C15ull | 1;
  memory.fresh = true;
}

void axi_memory_counters(AxiMemoryCounters* counters) { *counters = memory.counters; }

void axi_memory_clear_counters(void) { memory.counters = AxiMemoryCounters{}; }

// ---------------------------------------------------------------------------- called by axi_memory.sv

void axi_memory_reset(uint32_t beat_bytes) {
  memory.beat_bytes = beat_bytes;
  memory.addresses.clear();
  memory.complete.clear();
  memory.collecting.clear();
  memory.queue.clear();
  memory.responses.clear();
  memory.serving = false;
  memory.pins = kArReady | kAwReady | kWReady;
}

// `cycle` is the cycle that ends now, with the handshakes in `fire`. Returns the pins of the next
// cycle; `rdata` is left alone where R holds its beat.
uint32_t axi_memory_step(uint64_t cycle, uint32_t fire, uint64_t ar, uint64_t aw,
                         const uint32_t* wdata, uint32_t wstrb, uint32_t* rdata) {
  if (fire & (kAr | kAw | kW)) memory.fresh = false;
  if (fire & kAr) enqueue(unpack(ar, false), cycle);
  if (fire & kAw) memory.addresses.push_back(unpack(aw, true));
  if (fire & kW) {
    Beat beat;
    std::memcpy(beat.data, wdata, memory.beat_bytes);
    beat.strobe = wstrb;
    memory.collecting.push_back(beat);
    if (fire & kWLast) {
      memory.complete.push_back(std::move(memory.collecting));
      memory.collecting.clear();
    }
  }
  const bool right = (fire & (kAw | kW)) == 0 || join_writes(cycle);
  uint32_t pins = ready_pins() | (right ? 0 : kLastWrong);

  constexpr uint32_t r_bits = kRValid | kRLast | 3u << kRResp | 0xfu << kRId;
  constexpr uint32_t b_bits = kBValid | 3u << kBResp | 0xfu << kBId;
  if (fire & kRStall) {
    pins |= memory.pins & r_bits;
    memory.counters.r_stall_cycles++;
  } else {
    pins |= serve(cycle + 1, rdata);
  }
  if (fire & kBStall) {
    pins |= memory.pins & b_bits;
    memory.counters.b_stall_cycles++;
  } else {
    pins |= respond(cycle + 1);
  }
  const bool waiting = !memory.queue.empty() || !memory.responses.empty() || memory.serving;
  if (waiting || (pins & (kRValid | kBValid)) || stalls_on() ||
      (pins & (kArReady | kAwReady | kWReady)) != (kArReady | kAwReady | kWReady)) {
    pins |= kBusy;
  }
  memory.pins = pins;
  return pins;
}
}

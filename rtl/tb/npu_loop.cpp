// Implementation of npu_loop.h: a plain C++ loop over the clock.
#include "npu_loop.h"

#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "axi_memory.h"

namespace {

constexpr int kResetCycles = 4;
constexpr int kHandshakeCycles = 1000;
constexpr uint64_t kNever = ~0ull;

void cycle(NpuModel& model) { model.run_until_irq(1, kNever); }

// One AXI4-Lite write, address and data together; false where it is not accepted.
bool write_register(NpuModel& model, uint32_t address, uint32_t data) {
  NPU_PIN(model, s_axil_awaddr) = address;
  NPU_PIN(model, s_axil_wdata) = data;
  NPU_PIN(model, s_axil_awvalid) = 1;
  NPU_PIN(model, s_axil_wvalid) = 1;
  NPU_PIN(model, s_axil_bready) = 1;
  for (int i = 0; i < kHandshakeCycles; i++) {
    model.top->eval();
    const bool address_taken = NPU_PIN(model, s_axil_awvalid) && NPU_PIN(model, s_axil_awready);
    const bool data_taken = NPU_PIN(model, s_axil_wvalid) && NPU_PIN(model, s_axil_wready);
    const bool answered = NPU_PIN(model, s_axil_bvalid);
    cycle(model);
    if (address_taken) NPU_PIN(model, s_axil_awvalid) = 0;
    if (data_taken) NPU_PIN(model, s_axil_wvalid) = 0;
    if (answered) {
      NPU_PIN(model, s_axil_bready) = 0;
      return true;
    }
  }
  return false;
}

void reset(NpuModel& model) {
  NPU_PIN(model, rst_ni) = 0;
  for (int i = 0; i < kResetCycles; i++) cycle(model);
  NPU_PIN(model, rst_ni) = 1;
  cycle(model);
}

void timed_run(NpuModel& model, uint64_t limit) {
  const auto start = std::chrono::steady_clock::now();
  const uint64_t cycles = model.run_until_irq(limit, kNever);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  std::printf("cycles %llu seconds %.6f\n", static_cast<unsigned long long>(cycles),
              elapsed.count());
}

bool execute(NpuModel& model, const std::string& line) {
  std::istringstream words(line);
  std::string verb, first, second, third;
  words >> verb >> first >> second >> third;
  const auto number = [](const std::string& text) { return std::stoull(text, nullptr, 0); };
  if (verb.empty()) return true;
  if (verb == "map") return axi_memory_map(first.c_str(), number(second), number(third)) == 0;
  if (verb == "write") {
    return write_register(model, static_cast<uint32_t>(number(first)),
                          static_cast<uint32_t>(number(second)));
  }
  if (verb == "latency") {
    AxiMemoryOptions options{};
    options.latency = number(first);
    options.queue_depth = 256;
    options.seed = 1;
    axi_memory_configure(&options);
    return true;
  }
  if (verb == "run") {
    timed_run(model, number(first));
    return true;
  }
  return false;
}

}  // namespace

int run_loop(NpuModel& model, const std::string& path) {
  std::ifstream job(path);
  if (!job) {
    std::fprintf(stderr, "loop: cannot read %s\n", path.c_str());
    return 2;
  }
  model.top->eval();
  reset(model);
  for (std::string line; std::getline(job, line);) {
    if (!execute(model, line)) {
      std::fprintf(stderr, "loop: cannot do '%s'\n", line.c_str());
      return 2;
    }
  }
  model.top->final();
  return 0;
}

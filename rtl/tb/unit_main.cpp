// The main program of unit benches: cocotb's own, with a model whose clock and reset start low.
// Ports start random like all state, and a random clock could rise before any test has begun.
#include "Vtop.h"

namespace {

template <typename Model>
auto clock_low(Model& model, int) -> decltype(model.clk_i = 0, void()) {
  model.clk_i = 0;
}
template <typename Model>
void clock_low(Model&, long) {}

template <typename Model>
auto reset_low(Model& model, int) -> decltype(model.rst_ni = 0, void()) {
  model.rst_ni = 0;
}
template <typename Model>
void reset_low(Model&, long) {}

class QuietTop : public Vtop {
 public:
  template <typename... Arguments>
  explicit QuietTop(Arguments&&... arguments) : Vtop(arguments...) {
    clock_low<Vtop>(*this, 0);
    reset_low<Vtop>(*this, 0);
  }
};

}  // namespace

#define Vtop QuietTop
#include <verilator.cpp>

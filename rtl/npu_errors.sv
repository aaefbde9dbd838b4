// Purpose: collects error events and keeps the one with the lowest instruction index.
// Latency: an event of cycle t is in the outputs from t+1 on; `event_o` is combinational.
// Backpressure: none. In one cycle the lowest index wins, for equal indices the lowest source number;
// a later event replaces the error only if its index is lower.

module npu_errors #(
  parameter int unsigned Sources = 2
) (
  input logic clk_i,
  input logic rst_ni,

  input logic clear_i,  // forget; an event of this cycle counts
  input logic enable_i, // a run is going on

  input logic [Sources-1:0]       valid_i,
  input logic [Sources-1:0][ 7:0] code_i,
  input logic [Sources-1:0][31:0] index_i,
  input logic [Sources-1:0][ 2:0] engine_i,

  output logic        event_o,
  output logic        valid_o,
  output logic [ 7:0] code_o,
  output logic [31:0] index_o,
  output logic [ 2:0] engine_o
);

  typedef struct packed {
    logic        valid;
    logic [7:0]  code;
    logic [31:0] index;
    logic [2:0]  engine;
  } error_t;

  error_t error_d, error_q;

  assign event_o = enable_i && |valid_i;

  always_comb begin
    error_d = clear_i ? '0 : error_q;
    if (event_o) begin
      for (int i = 0; i < Sources; i++) begin
        if (valid_i[i] && (!error_d.valid || index_i[i] < error_d.index)) begin
          error_d = '{valid: 1'b1, code: code_i[i], index: index_i[i], engine: engine_i[i]};
        end
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) error_q <= '0;
    else error_q <= error_d;
  end

  assign valid_o  = error_q.valid;
  assign code_o   = error_q.code;
  assign index_o  = error_q.index;
  assign engine_o = error_q.engine;

endmodule

// Store DMA: copies activation rows to strided runs of DRAM beats.
// Latency: a command accepted in cycle t sends its first write address in cycle t+1, one a cycle
// while fewer than WRITE_OUTSTANDING bursts wait for their response, and its first beat in cycle
// t+3 at the earliest, in any case after the burst's address; beats then follow without a gap
// while `wready_i` is high, across bursts too. `done_o` is high in the cycle after the last response.
// Backpressure: AW and W wait; reads run ahead of W by as much as the buffer holds. B is always
// accepted.
module npu_store (
  input logic clk_i,
  input logic rst_ni,

  input  logic                                                                  cmd_valid_i,
  output logic                                                                  cmd_ready_o,
  input  npu_pkg::command_t                                                     cmd_i,
  output logic                                                                  done_o,
  output logic                                                                  error_o,
  input  logic              [npu_pkg::BASE_REGISTERS-1:0][npu_pkg::DRAM_AW-1:0] base_i,

  output logic                                 awvalid_o,
  input  logic                                 awready_i,
  output logic          [npu_pkg::DRAM_AW-1:0] awaddr_o,
  output logic          [                 7:0] awlen_o,
  output logic                                 wvalid_o,
  input  logic                                 wready_i,
  output npu_pkg::row_t                        wdata_o,
  output logic                                 wlast_o,
  input  logic                                 bvalid_i,
  output logic                                 bready_o,
  input  logic          [                 1:0] bresp_i,

  output logic                 act_rd_en_o,
  output logic          [15:0] act_rd_row_o,
  input  npu_pkg::row_t        act_rd_data_i
);
  localparam int unsigned FlightWidth = $clog2(npu_pkg::WRITE_OUTSTANDING + 1);
  localparam logic [FlightWidth-1:0] MaxFlight = FlightWidth'(npu_pkg::WRITE_OUTSTANDING);
  localparam int unsigned BufferRows = 4;  // covers the three cycles from a free place to a row
  localparam int unsigned BufferWidth = $clog2(BufferRows + 1);

  npu_pkg::store_t store;
  npu_dma_pkg::counts_t counts;
  npu_dma_pkg::dram_walk_t dram_walk;
  npu_dma_pkg::local_walk_t local_walk;
  logic accept, idle_q, done_q, error_q, burst_valid, aw_fire, w_fire, row_valid, last_response;
  logic [FlightWidth-1:0] flight_q;  // bursts whose address was sent and not yet answered
  logic [FlightWidth-1:0] bursts_ready;  // of these, bursts whose last beat was not sent
  logic [BufferWidth-1:0] rows_ready;
  logic reading_q;  // a row is on its way from the memory to the buffer
  logic [7:0] len, beat_q;
  logic row_last, unused_bits;

  assign store = cmd_i.instr;
  assign accept = cmd_valid_i && idle_q;
  assign counts = {store.count2, store.count1, store.count0};
  assign local_walk = {
    store.local_base, store.local_stride2, store.local_stride1, store.local_stride0, counts
  };
  always_comb begin
    dram_walk = {npu_dma_pkg::BEAT_AW'(0), store.dram_stride2, store.dram_stride1, counts};
    dram_walk.base = base_i[store.base_reg][npu_pkg::DRAM_AW-1:npu_dma_pkg::BEAT_BITS] +
        npu_dma_pkg::BEAT_AW'(store.dram_offset);
  end

  npu_dma_bursts u_bursts (
    .clk_i,
    .rst_ni,
    .start_i(accept),
    .walk_i (dram_walk),
    .valid_o(burst_valid),
    .ready_i(aw_fire),
    .addr_o (awaddr_o),
    .len_o  (awlen_o)
  );

  npu_dma_rows u_rows (
    .clk_i,
    .rst_ni,
    .start_i(accept),
    .walk_i (local_walk),
    .valid_o(row_valid),
    .next_i (act_rd_en_o),
    .row_o  (act_rd_row_o),
    .last_o (row_last)
  );

  npu_dma_fifo #(
    .Width(npu_pkg::BUS_BITS),
    .Depth(BufferRows)
  ) u_buffer (
    .clk_i,
    .rst_ni,
    .push_i (reading_q),
    .data_i (act_rd_data_i),
    .pop_i  (w_fire),
    .head_o (wdata_o),
    .count_o(rows_ready)
  );

  // Lengths of the bursts whose address was sent.
  npu_dma_fifo #(
    .Width(8),
    .Depth(npu_pkg::WRITE_OUTSTANDING)
  ) u_lengths (
    .clk_i,
    .rst_ni,
    .push_i (aw_fire),
    .data_i (awlen_o),
    .pop_i  (w_fire && wlast_o),
    .head_o (len),
    .count_o(bursts_ready)
  );

  assign awvalid_o = burst_valid && flight_q != MaxFlight;
  assign aw_fire = awvalid_o && awready_i;
  assign act_rd_en_o = row_valid && rows_ready + BufferWidth'(reading_q) < BufferWidth'(BufferRows);
  assign wvalid_o = rows_ready != '0 && bursts_ready != '0;
  assign wlast_o = beat_q == len;
  assign w_fire = wvalid_o && wready_i;
  assign bready_o = 1'b1;
  assign unused_bits = ^{
    store.reserved, store.give, store.take, store.opcode, cmd_i.index, bresp_i[0], row_last
  };
  assign last_response = bvalid_i && !burst_valid && flight_q == FlightWidth'(1);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      idle_q <= 1'b1;
      done_q <= 1'b0;
      flight_q <= '0;
      reading_q <= 1'b0;
      beat_q <= '0;
    end else begin
      idle_q <= (idle_q && !cmd_valid_i) || done_q;
      done_q <= last_response;
      flight_q <= flight_q + FlightWidth'(aw_fire) - FlightWidth'(bvalid_i);
      reading_q <= act_rd_en_o;
      if (w_fire) beat_q <= wlast_o ? '0 : beat_q + 8'd1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (accept) error_q <= 1'b0;
    else if (bvalid_i) error_q <= error_q || bresp_i[1];
  end

  assign cmd_ready_o = idle_q;
  assign done_o = done_q;
  assign error_o = error_q;

`ifndef SYNTHESIS
  // A waiting command stays as it is; a stop or a reset may withdraw it.
  cmd_stable_a :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      cmd_valid_i && !cmd_ready_o |=> !cmd_valid_i || $stable(
      cmd_i
  ))
  else $error("npu_store: command changed while it waited");
  aw_stable_a :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      awvalid_o && !awready_i |=> awvalid_o && $stable(
      {awaddr_o, awlen_o}
  ))
  else $error("npu_store: write address changed while it waited");
  w_stable_a :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      wvalid_o && !wready_i |=> wvalid_o && $stable(
      {wdata_o, wlast_o}
  ))
  else $error("npu_store: beat changed while it waited");
  b_expected_a :
  assert property (@(posedge clk_i) disable iff (!rst_ni) bvalid_i |-> flight_q != bursts_ready)
  else $error("npu_store: a response that no burst asked for");
`endif
endmodule

// Splits the DRAM side of a transfer into AXI bursts: each run of count0 contiguous beats is cut at
// 4 KiB boundaries and at 256 beats; runs are never merged.
// Latency: `start_i` in cycle t gives the first burst in cycle t+1, then one burst for each cycle in
// which `ready_i` is high. Backpressure: a burst stays until `ready_i`.
module npu_dma_bursts (
  input logic clk_i,
  input logic rst_ni,

  input logic                    start_i,  // only while valid_o is low
  input npu_dma_pkg::dram_walk_t walk_i,

  output logic                        valid_o,
  input  logic                        ready_i,
  output logic [npu_pkg::DRAM_AW-1:0] addr_o,   // in bytes
  output logic [                 7:0] len_o     // beats - 1
);
  localparam int unsigned PageBits = npu_dma_pkg::PAGE_BITS;
  localparam logic [15:0] PageBeats = 16'd1 << PageBits;
  localparam logic [15:0] BurstBeats = 16'(npu_dma_pkg::BURST_BEATS);
  typedef logic [npu_dma_pkg::BEAT_AW-1:0] beat_t;

  logic active_d, active_q;
  npu_dma_pkg::dram_walk_t walk_q;  // its base is the first beat of the group
  beat_t base_d, run_d, run_q, at_d, at_q;  // first beat of the group, of the run, of the burst
  logic [15:0] left_d, left_q;  // beats left in the run
  logic [11:0] run_index_d, run_index_q, group_index_d, group_index_q;
  logic [15:0] to_page, beats;
  logic run_ends, group_ends, walk_ends;

  always_comb begin
    to_page = PageBeats - {{(16 - PageBits) {1'b0}}, at_q[PageBits-1:0]};
    beats   = (left_q < BurstBeats) ? left_q : BurstBeats;
    if (to_page < beats) beats = to_page;
    run_ends   = beats == left_q;
    group_ends = run_ends && run_index_q == walk_q.counts.count1 - 12'd1;
    walk_ends  = group_ends && group_index_q == walk_q.counts.count2 - 12'd1;
  end

  always_comb begin
    active_d = active_q;
    {base_d, run_d, at_d, left_d} = {walk_q.base, run_q, at_q, left_q};
    {run_index_d, group_index_d} = {run_index_q, group_index_q};
    if (start_i) begin
      active_d = 1'b1;
      {base_d, run_d, at_d} = {3{walk_i.base}};
      left_d = walk_i.counts.count0;
      {run_index_d, group_index_d} = '0;
    end else if (active_q && ready_i) begin
      active_d = !walk_ends;
      at_d = at_q + beat_t'(beats);
      left_d = left_q - beats;
      if (run_ends) begin
        run_d = run_q + beat_t'(walk_q.stride1);
        run_index_d = run_index_q + 12'd1;
        if (group_ends) begin
          base_d = walk_q.base + beat_t'(walk_q.stride2);
          group_index_d = group_index_q + 12'd1;
          run_d = base_d;
          run_index_d = '0;
        end
        at_d   = run_d;
        left_d = walk_q.counts.count0;
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      active_q <= 1'b0;
    end else begin
      active_q <= active_d;
    end
  end

  always_ff @(posedge clk_i) begin
    if (start_i) walk_q <= walk_i;
    if (start_i || (active_q && ready_i)) begin
      walk_q.base <= base_d;
      {run_q, at_q, left_q} <= {run_d, at_d, left_d};
      {run_index_q, group_index_q} <= {run_index_d, group_index_d};
    end
  end

  assign valid_o = active_q;
  assign addr_o  = {at_q, {npu_dma_pkg::BEAT_BITS{1'b0}}};
  assign len_o   = 8'(beats - 16'd1);
endmodule

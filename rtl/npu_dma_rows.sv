// Walks the on-chip side of a transfer: one row for each beat, in the order of the beats.
// Latency: `start_i` in cycle t gives the first row in cycle t+1, then one row for each cycle in
// which `next_i` is high. Backpressure: a row stays until `next_i`.
module npu_dma_rows (
  input logic clk_i,
  input logic rst_ni,

  input logic                     start_i,  // only while valid_o is low
  input npu_dma_pkg::local_walk_t walk_i,

  output logic        valid_o,
  input  logic        next_i,
  output logic [15:0] row_o,
  output logic        last_o
);
  logic active_d, active_q;
  npu_dma_pkg::local_walk_t walk_q;  // its base is the first row of the group
  logic [15:0] base_d, run_d, run_q, row_d, row_q;  // first row of the group, of the run; the row
  logic [15:0] beat_d, beat_q;
  logic [11:0] run_index_d, run_index_q, group_index_d, group_index_q;
  logic beat_last, run_last, group_last;

  assign beat_last  = beat_q == walk_q.counts.count0 - 16'd1;
  assign run_last   = run_index_q == walk_q.counts.count1 - 12'd1;
  assign group_last = group_index_q == walk_q.counts.count2 - 12'd1;

  always_comb begin
    active_d = active_q;
    {base_d, run_d, row_d, beat_d} = {walk_q.base, run_q, row_q, beat_q};
    {run_index_d, group_index_d} = {run_index_q, group_index_q};
    if (start_i) begin
      active_d = 1'b1;
      {base_d, run_d, row_d} = {3{walk_i.base}};
      beat_d = '0;
      {run_index_d, group_index_d} = '0;
    end else if (active_q && next_i) begin
      active_d = !(beat_last && run_last && group_last);
      row_d = row_q + walk_q.stride0;
      beat_d = beat_q + 16'd1;
      if (beat_last) begin
        run_d = run_q + walk_q.stride1;
        run_index_d = run_index_q + 12'd1;
        if (run_last) begin
          base_d = walk_q.base + walk_q.stride2;
          group_index_d = group_index_q + 12'd1;
          run_d = base_d;
          run_index_d = '0;
        end
        row_d  = run_d;
        beat_d = '0;
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
    if (start_i || (active_q && next_i)) begin
      walk_q.base <= base_d;
      {run_q, row_q, beat_q} <= {run_d, row_d, beat_d};
      {run_index_q, group_index_q} <= {run_index_d, group_index_d};
    end
  end

  assign valid_o = active_q;
  assign row_o   = row_q;
  assign last_o  = beat_last && run_last && group_last;
endmodule

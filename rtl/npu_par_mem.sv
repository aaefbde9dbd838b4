// Purpose: parameter memory. The load DMA writes it in bus beats of LANES bytes; the vector engine
// reads rows of LANES 32-bit words, which are PAR_BEATS_PER_ROW beats.
// Latency: row in cycle t, data in cycle t+1.
// Backpressure: none; each side has its own port.

module npu_par_mem (
  input logic clk_i,

  input logic                 wr_en_i,
  input logic          [15:0] wr_beat_i,
  input npu_pkg::row_t        wr_data_i,

  input  logic                      rd_en_i,
  input  logic               [15:0] rd_row_i,
  output npu_pkg::word_row_t        rd_data_o
);

  localparam int unsigned Beats = npu_pkg::PAR_BEATS_PER_ROW;
  localparam int unsigned BeatWidth = $clog2(Beats);
  localparam int unsigned RowWidth = npu_pkg::PAR_AW;

  logic [Beats-1:0][npu_pkg::BUS_BITS-1:0] beats;

  for (genvar b = 0; b < Beats; b++) begin : gen_beat
    npu_ram #(
      .Width(npu_pkg::BUS_BITS),
      .Depth(npu_pkg::PAR_ROWS)
    ) u_ram (
      .clk_i,
      .rd_en_i,
      .rd_row_i (rd_row_i[RowWidth-1:0]),
      .rd_data_o(beats[b]),
      .wr_en_i  (wr_en_i && wr_beat_i[BeatWidth-1:0] == BeatWidth'(b)),
      .wr_row_i (wr_beat_i[BeatWidth+:RowWidth]),
      .wr_data_i
    );
  end

  assign rd_data_o = beats;

  if (RowWidth + BeatWidth < 16) begin : gen_unused
    logic unused_beat_bits;
    assign unused_beat_bits = ^wr_beat_i[15:RowWidth+BeatWidth];
  end
  if (RowWidth < 16) begin : gen_unused_row
    logic unused_row_bits;
    assign unused_row_bits = ^rd_row_i[15:RowWidth];
  end

endmodule

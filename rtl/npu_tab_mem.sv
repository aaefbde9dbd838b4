// Purpose: table memory, TABLES tables of TABLE_WORDS 32-bit words. The load DMA writes it in bus
// beats of LANES bytes; every lane reads one word a cycle. Each lane has a copy of its own, so that
// no memory needs more than one read port; a write goes to all copies.
// Latency: word numbers in cycle t, words in cycle t+1.
// Backpressure: none; each side has its own ports.

module npu_tab_mem (
  input logic clk_i,

  input logic                 wr_en_i,
  input logic          [15:0] wr_beat_i,
  input npu_pkg::row_t        wr_data_i,

  input  logic                                         rd_en_i,
  input  logic                                         rd_table_i,
  input  logic               [npu_pkg::LANES-1:0][7:0] rd_word_i,
  output npu_pkg::word_row_t                           rd_data_o
);

  localparam int unsigned Words = npu_pkg::LANES / 4;  // of a beat
  localparam int unsigned WordWidth = $clog2(Words);
  localparam int unsigned BeatWidth = npu_pkg::TAB_AW;

  for (genvar l = 0; l < npu_pkg::LANES; l++) begin : gen_lane
    logic [BeatWidth+WordWidth-1:0] rd_place;
    logic [WordWidth-1:0] word_q;  // which word of the beat
    logic [Words-1:0][31:0] beat;

    assign rd_place = {rd_table_i, rd_word_i[l]};

    npu_ram #(
      .Width(npu_pkg::BUS_BITS),
      .Depth(npu_pkg::TAB_BEATS)
    ) u_ram (
      .clk_i,
      .rd_en_i,
      .rd_row_i (rd_place[WordWidth+:BeatWidth]),
      .rd_data_o(beat),
      .wr_en_i,
      .wr_row_i (wr_beat_i[BeatWidth-1:0]),
      .wr_data_i
    );

    always_ff @(posedge clk_i) begin
      if (rd_en_i) word_q <= rd_place[WordWidth-1:0];
    end

    assign rd_data_o[l] = beat[word_q];
  end

  logic unused_beat_bits;
  assign unused_beat_bits = ^wr_beat_i[15:BeatWidth];

endmodule

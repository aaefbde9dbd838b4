// Purpose: activation memory in ACT_BANKS banks, each with one read and one write port. The bank of
// a row is the upper part of its address. Ports are never arbitrated: the program keeps engines on
// different banks, and two users of one port in one cycle are reported.
// Latency: row in cycle t, data in cycle t+1 (held until the next read by the same reader).
// Backpressure: none. On a conflict the lowest-numbered user has the port, and `conflict_o` names
// every engine that wanted it, in the same cycle.

module npu_act_mem (
  input logic clk_i,
  input logic rst_ni,

  // Readers: 0 matrix engine, 1 vector engine, 2 store DMA.
  input  logic          [2:0]       rd_en_i,
  input  logic          [2:0][15:0] rd_row_i,
  output npu_pkg::row_t [2:0]       rd_data_o,
  // Writers: 0 load DMA, 1 vector engine.
  input  logic          [1:0]       wr_en_i,
  input  logic          [1:0][15:0] wr_row_i,
  input  npu_pkg::row_t [1:0]       wr_data_i,

  output logic [3:0] conflict_o  // bit = engine
);

  localparam int unsigned Banks = npu_pkg::ACT_BANKS;
  localparam int unsigned BankWidth = $clog2(Banks);
  localparam int unsigned RowWidth = npu_pkg::ACT_AW - BankWidth;
  localparam int unsigned Readers = 3;
  localparam int unsigned Writers = 2;
  localparam logic [2:0] EngineOfReader[Readers] = '{
      npu_pkg::ENGINE_MATRIX,
      npu_pkg::ENGINE_VECTOR,
      npu_pkg::ENGINE_STORE
  };
  localparam logic [2:0] EngineOfWriter[Writers] = '{npu_pkg::ENGINE_LOAD, npu_pkg::ENGINE_VECTOR};

  logic [Readers-1:0][BankWidth-1:0] rd_bank, rd_bank_q;
  logic [Writers-1:0][BankWidth-1:0] wr_bank;
  npu_pkg::row_t [Banks-1:0] bank_data;

  for (genvar r = 0; r < Readers; r++) begin : gen_reader
    assign rd_bank[r]   = rd_row_i[r][npu_pkg::ACT_AW-1:RowWidth];
    assign rd_data_o[r] = bank_data[rd_bank_q[r]];
  end
  for (genvar w = 0; w < Writers; w++) begin : gen_writer
    assign wr_bank[w] = wr_row_i[w][npu_pkg::ACT_AW-1:RowWidth];
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      rd_bank_q <= '0;
    end else begin
      for (int r = 0; r < Readers; r++) if (rd_en_i[r]) rd_bank_q[r] <= rd_bank[r];
    end
  end

  for (genvar b = 0; b < Banks; b++) begin : gen_bank
    logic rd_en, wr_en;
    logic [RowWidth-1:0] rd_row, wr_row;
    npu_pkg::row_t wr_data;

    always_comb begin
      rd_en  = 1'b0;
      rd_row = '0;
      for (int r = Readers - 1; r >= 0; r--) begin
        if (rd_en_i[r] && rd_bank[r] == BankWidth'(b)) begin
          rd_en  = 1'b1;
          rd_row = rd_row_i[r][RowWidth-1:0];
        end
      end
      wr_en   = 1'b0;
      wr_row  = '0;
      wr_data = wr_data_i[0];
      for (int w = Writers - 1; w >= 0; w--) begin
        if (wr_en_i[w] && wr_bank[w] == BankWidth'(b)) begin
          wr_en   = 1'b1;
          wr_row  = wr_row_i[w][RowWidth-1:0];
          wr_data = wr_data_i[w];
        end
      end
    end

    npu_ram #(
      .Width(npu_pkg::BUS_BITS),
      .Depth(npu_pkg::ACT_BANK_ROWS)
    ) u_ram (
      .clk_i,
      .rd_en_i  (rd_en),
      .rd_row_i (rd_row),
      .rd_data_o(bank_data[b]),
      .wr_en_i  (wr_en),
      .wr_row_i (wr_row),
      .wr_data_i(wr_data)
    );
  end

  always_comb begin
    conflict_o = '0;
    for (int r = 0; r < Readers; r++) begin
      for (int s = r + 1; s < Readers; s++) begin
        if (rd_en_i[r] && rd_en_i[s] && rd_bank[r] == rd_bank[s]) begin
          conflict_o[2'(EngineOfReader[r])] = 1'b1;
          conflict_o[2'(EngineOfReader[s])] = 1'b1;
        end
      end
    end
    if (&wr_en_i && wr_bank[0] == wr_bank[1]) begin
      conflict_o[2'(EngineOfWriter[0])] = 1'b1;
      conflict_o[2'(EngineOfWriter[1])] = 1'b1;
    end
  end

  if (npu_pkg::ACT_AW < 16) begin : gen_unused
    logic unused_row_bits;
    always_comb begin
      unused_row_bits = 1'b0;
      for (int r = 0; r < Readers; r++) unused_row_bits ^= ^rd_row_i[r][15:npu_pkg::ACT_AW];
      for (int w = 0; w < Writers; w++) unused_row_bits ^= ^wr_row_i[w][15:npu_pkg::ACT_AW];
    end
  end

endmodule

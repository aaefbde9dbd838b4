// Purpose: the AXI4-Lite register file (accelsim/spec/registers.py) and the interrupt.
// Latency: a write takes effect in the cycle after it was accepted; read data comes one cycle after
// the address. Backpressure: one write and one read at a time; a write address and its data are
// accepted together.

module npu_regs (
  input logic clk_i,
  input logic rst_ni,

  input  logic [npu_pkg::REG_AW-1:0] s_axil_awaddr_i,
  input  logic                       s_axil_awvalid_i,
  output logic                       s_axil_awready_o,
  input  logic [               31:0] s_axil_wdata_i,
  input  logic [                3:0] s_axil_wstrb_i,
  input  logic                       s_axil_wvalid_i,
  output logic                       s_axil_wready_o,
  output logic [                1:0] s_axil_bresp_o,
  output logic                       s_axil_bvalid_o,
  input  logic                       s_axil_bready_i,
  input  logic [npu_pkg::REG_AW-1:0] s_axil_araddr_i,
  input  logic                       s_axil_arvalid_i,
  output logic                       s_axil_arready_o,
  output logic [               31:0] s_axil_rdata_o,
  output logic [                1:0] s_axil_rresp_o,
  output logic                       s_axil_rvalid_o,
  input  logic                       s_axil_rready_i,

  output logic start_o,
  output logic reset_o,
  output logic irq_o,
  output logic [31:0] length_o,
  output logic [31:0] opcodes_o,
  output logic [63:0] hash_o,
  output logic [31:0] watchdog_o,
  output logic [npu_pkg::BASE_REGISTERS-1:0][npu_pkg::DRAM_AW-1:0] base_o,
  output logic [npu_pkg::BASE_REGISTERS-1:0][31:0] size_o,
  output logic [15:0][7:0] preset_o,

  input logic             clear_i,         // soft reset
  input logic             finish_i,        // raises the interrupt
  input logic             busy_i,
  input logic             resetting_i,
  input logic             done_i,
  input logic             error_i,
  input logic [ 7:0]      error_code_i,
  input logic [31:0]      error_index_i,
  input logic [ 2:0]      error_engine_i,
  input logic [63:0]      cycles_i,
  input logic [15:0][7:0] count_i          // semaphores now
);

  localparam logic [1:0] RespOkay = 2'b00;
  localparam logic [1:0] RespSlverr = 2'b10;
  localparam int unsigned BaseHiBits = npu_pkg::DRAM_AW - 32;
  localparam logic [31:0] BaseMask = ~((32'd1 << npu_pkg::BASE_ALIGN_BITS) - 32'd1);

  typedef logic [npu_pkg::REG_AW-1:0] address_t;

  // State: what `rw` registers hold, and the interrupt.
  typedef struct packed {
    logic irq_enable;
    logic [31:0] length;
    logic [31:0] opcodes;
    logic [63:0] hash;
    logic [31:0] watchdog;
    logic [npu_pkg::BASE_REGISTERS-1:0][63:0] base;  // only the bits that exist are ever set
    logic [npu_pkg::BASE_REGISTERS-1:0][31:0] size;
    logic [15:0][7:0] preset;
  } registers_t;

  registers_t r_d, r_q;
  logic irq_d, irq_q, start_d, start_q, reset_d, reset_q;
  logic bvalid_q, rvalid_q, bad_write_q, bad_read_q;
  logic [31:0] rdata_q, rdata_d, mask, data;
  logic write, read, mapped_d;
  address_t waddr, raddr;

  // ------------------------------------------------------------------------------------ channels
  assign waddr = {s_axil_awaddr_i[npu_pkg::REG_AW-1:2], 2'b00};
  assign raddr = {s_axil_araddr_i[npu_pkg::REG_AW-1:2], 2'b00};
  assign write = s_axil_awvalid_i && s_axil_wvalid_i && !bvalid_q;
  assign read = s_axil_arvalid_i && !rvalid_q;
  assign s_axil_awready_o = write;
  assign s_axil_wready_o = write;
  assign s_axil_bvalid_o = bvalid_q;
  assign s_axil_bresp_o = bad_write_q ? RespSlverr : RespOkay;
  assign s_axil_arready_o = !rvalid_q;
  assign s_axil_rvalid_o = rvalid_q;
  assign s_axil_rdata_o = rdata_q;
  assign s_axil_rresp_o = bad_read_q ? RespSlverr : RespOkay;
  assign mask = {
    {8{s_axil_wstrb_i[3]}}, {8{s_axil_wstrb_i[2]}}, {8{s_axil_wstrb_i[1]}}, {8{s_axil_wstrb_i[0]}}
  };
  assign data = s_axil_wdata_i & mask;

  // Arrays of registers lie at multiples of their size.
  function automatic logic is_base(address_t a);
    return (a >> 6) == (npu_pkg::REG_BASE_LO >> 6);
  endfunction
  function automatic logic is_size(address_t a);
    return (a >> 5) == (npu_pkg::REG_SIZE >> 5);
  endfunction
  function automatic logic is_preset(address_t a);
    return (a >> 6) == (npu_pkg::REG_PRESET >> 6);
  endfunction
  function automatic logic is_semaphore(address_t a);
    return (a >> 6) == (npu_pkg::REG_SEMAPHORE >> 6);
  endfunction
  function automatic logic is_mapped(address_t a);
    return a <= npu_pkg::REG_CYCLES_HI || is_base(a) || is_size(a) || is_preset(a) ||
        is_semaphore(a);
  endfunction
  function automatic logic [31:0] merge(logic [31:0] old, logic [31:0] wdata, logic [31:0] wmask);
    return (old & ~wmask) | wdata;
  endfunction

  // -------------------------------------------------------------------------------------- writes
  always_comb begin
    r_d     = r_q;
    irq_d   = irq_q;
    start_d = 1'b0;
    reset_d = 1'b0;
    if (write) begin
      if (waddr == npu_pkg::REG_CTRL) begin
        reset_d = data[1];
        start_d = data[0] && !data[1] && !busy_i && !resetting_i && !reset_q;
      end
      if (waddr == npu_pkg::REG_IRQ_STATUS && data[0]) irq_d = 1'b0;
      if (waddr == npu_pkg::REG_IRQ_ENABLE && mask[0]) r_d.irq_enable = data[0];
    end
    if (write && !busy_i) begin
      unique case (waddr)
        npu_pkg::REG_PROGRAM_LENGTH:  r_d.length = merge(r_q.length, data, mask);
        npu_pkg::REG_PROGRAM_OPCODES: r_d.opcodes = merge(r_q.opcodes, data, mask);
        npu_pkg::REG_PROGRAM_HASH_LO: r_d.hash[31:0] = merge(r_q.hash[31:0], data, mask);
        npu_pkg::REG_PROGRAM_HASH_HI: r_d.hash[63:32] = merge(r_q.hash[63:32], data, mask);
        npu_pkg::REG_WATCHDOG:        r_d.watchdog = merge(r_q.watchdog, data, mask);
        default:                      ;
      endcase
      if (is_base(waddr) && !waddr[2]) begin
        r_d.base[waddr[5:3]][31:0] = merge(r_q.base[waddr[5:3]][31:0], data, mask) & BaseMask;
      end else if (is_base(waddr)) begin
        r_d.base[waddr[5:3]][63:32] = merge(r_q.base[waddr[5:3]][63:32], data, mask) &
            ((32'd1 << BaseHiBits) - 32'd1);
      end else if (is_size(waddr)) begin
        r_d.size[waddr[4:2]] = merge(r_q.size[waddr[4:2]], data, mask);
      end else if (is_preset(waddr) && mask[0]) begin
        r_d.preset[waddr[5:2]] = data[7:0];
      end
    end
    if (finish_i) irq_d = 1'b1;
  end

  // --------------------------------------------------------------------------------------- reads
  always_comb begin
    rdata_d  = '0;
    mapped_d = is_mapped(raddr);
    if (read) begin
      unique case (raddr)
        npu_pkg::REG_ID:              rdata_d = npu_pkg::IDENTIFIER;
        npu_pkg::REG_LANES:           rdata_d = 32'(npu_pkg::LANES);
        npu_pkg::REG_STATUS:          rdata_d = {28'd0, resetting_i, error_i, done_i, busy_i};
        npu_pkg::REG_IRQ_ENABLE:      rdata_d = 32'(r_q.irq_enable);
        npu_pkg::REG_IRQ_STATUS:      rdata_d = 32'(irq_q);
        npu_pkg::REG_ERROR_CODE:      rdata_d = 32'(error_code_i);
        npu_pkg::REG_ERROR_INDEX:     rdata_d = error_index_i;
        npu_pkg::REG_ERROR_ENGINE:    rdata_d = 32'(error_engine_i);
        npu_pkg::REG_PROGRAM_LENGTH:  rdata_d = r_q.length;
        npu_pkg::REG_PROGRAM_OPCODES: rdata_d = r_q.opcodes;
        npu_pkg::REG_PROGRAM_HASH_LO: rdata_d = r_q.hash[31:0];
        npu_pkg::REG_PROGRAM_HASH_HI: rdata_d = r_q.hash[63:32];
        npu_pkg::REG_WATCHDOG:        rdata_d = r_q.watchdog;
        npu_pkg::REG_CYCLES_LO:       rdata_d = cycles_i[31:0];
        npu_pkg::REG_CYCLES_HI:       rdata_d = cycles_i[63:32];
        default: begin
          if (is_base(raddr)) rdata_d = 32'(r_q.base[raddr[5:3]] >> {raddr[2], 5'd0});
          else if (is_size(raddr)) rdata_d = r_q.size[raddr[4:2]];
          else if (is_preset(raddr)) rdata_d = 32'(r_q.preset[raddr[5:2]]);
          else if (is_semaphore(raddr)) rdata_d = 32'(count_i[raddr[5:2]]);
        end
      endcase
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      r_q         <= '0;
      irq_q       <= 1'b0;
      start_q     <= 1'b0;
      reset_q     <= 1'b0;
      bvalid_q    <= 1'b0;
      bad_write_q <= 1'b0;
      rvalid_q    <= 1'b0;
      bad_read_q  <= 1'b0;
      rdata_q     <= '0;
    end else begin
      if (write || finish_i) begin
        r_q   <= r_d;
        irq_q <= irq_d;
      end
      if (clear_i) begin
        r_q   <= '0;
        irq_q <= 1'b0;
      end
      start_q <= start_d;
      reset_q <= reset_d;
      if (write) begin
        bvalid_q    <= 1'b1;
        bad_write_q <= !is_mapped(waddr);
      end else if (s_axil_bready_i) begin
        bvalid_q <= 1'b0;
      end
      if (read) begin
        rvalid_q   <= 1'b1;
        rdata_q    <= rdata_d;
        bad_read_q <= !mapped_d;
      end else if (s_axil_rready_i) begin
        rvalid_q <= 1'b0;
      end
    end
  end

  assign start_o    = start_q;
  assign reset_o    = reset_q;
  assign irq_o      = irq_q && r_q.irq_enable;
  assign length_o   = r_q.length;
  assign opcodes_o  = r_q.opcodes;
  assign hash_o     = r_q.hash;
  assign watchdog_o = r_q.watchdog;
  assign size_o     = r_q.size;
  assign preset_o   = r_q.preset;
  for (genvar b = 0; b < npu_pkg::BASE_REGISTERS; b++) begin : gen_base
    assign base_o[b] = r_q.base[b][npu_pkg::DRAM_AW-1:0];
  end

  logic unused_bits;
  assign unused_bits = ^{s_axil_awaddr_i[1:0], s_axil_araddr_i[1:0], r_q};

`ifndef SYNTHESIS
  npu_axil_check u_check (
    .clk_i,
    .rst_ni,
    .awaddr_i (s_axil_awaddr_i),
    .awvalid_i(s_axil_awvalid_i),
    .awready_i(s_axil_awready_o),
    .wdata_i  (s_axil_wdata_i),
    .wstrb_i  (s_axil_wstrb_i),
    .wvalid_i (s_axil_wvalid_i),
    .wready_i (s_axil_wready_o),
    .bresp_i  (s_axil_bresp_o),
    .bvalid_i (s_axil_bvalid_o),
    .bready_i (s_axil_bready_i),
    .araddr_i (s_axil_araddr_i),
    .arvalid_i(s_axil_arvalid_i),
    .arready_i(s_axil_arready_o),
    .rdata_i  (s_axil_rdata_o),
    .rresp_i  (s_axil_rresp_o),
    .rvalid_i (s_axil_rvalid_o),
    .rready_i (s_axil_rready_i)
  );
`endif

endmodule

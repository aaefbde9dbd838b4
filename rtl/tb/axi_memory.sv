// AXI4 memory for simulation: one flat array in C++ (axi_memory.cpp), one request queue, one server.
//
// Timing (docs/contract.md): a read enters the queue in the cycle of its AR handshake, a write burst in
// the cycle of its last W handshake, a read first when both come together. Service starts at
// max(arrival + latency, server free); a read's beat j is on R in cycle s+j, a write occupies as
// many cycles as beats and its B is valid in cycle s+n. Ready is high unless the queue is full.
// Backpressure: R holds its beat while rready_i is low, which stalls the server; B waits on its own.
// Stalls, errors, latency and the array are set at run time through axi_memory.h.
module axi_memory #(
  parameter  int unsigned DataWidth = 64,
  parameter  int unsigned AddrWidth = 40,
  parameter  int unsigned IdWidth   = 2,
  localparam int unsigned StrbWidth = DataWidth / 8
) (
  input logic clk_i,
  input logic rst_ni,

  input  logic [  IdWidth-1:0] awid_i,
  input  logic [AddrWidth-1:0] awaddr_i,
  input  logic [          7:0] awlen_i,
  input  logic [          2:0] awsize_i,
  input  logic [          1:0] awburst_i,
  input  logic                 awvalid_i,
  output logic                 awready_o,
  input  logic [DataWidth-1:0] wdata_i,
  input  logic [StrbWidth-1:0] wstrb_i,
  input  logic                 wlast_i,
  input  logic                 wvalid_i,
  output logic                 wready_o,
  output logic [  IdWidth-1:0] bid_o,
  output logic [          1:0] bresp_o,
  output logic                 bvalid_o,
  input  logic                 bready_i,
  input  logic [  IdWidth-1:0] arid_i,
  input  logic [AddrWidth-1:0] araddr_i,
  input  logic [          7:0] arlen_i,
  input  logic [          2:0] arsize_i,
  input  logic [          1:0] arburst_i,
  input  logic                 arvalid_i,
  output logic                 arready_o,
  output logic [  IdWidth-1:0] rid_o,
  output logic [DataWidth-1:0] rdata_o,
  output logic [          1:0] rresp_o,
  output logic                 rlast_o,
  output logic                 rvalid_o,
  input  logic                 rready_i
);
  // Layout of the pins word is shared with axi_memory.cpp.
  typedef struct packed {
    logic       last_wrong;
    logic       busy;
    logic [3:0] bid;
    logic [3:0] rid;
    logic [1:0] bresp;
    logic       bvalid;
    logic [1:0] rresp;
    logic       rlast;
    logic       rvalid;
    logic       wready;
    logic       awready;
    logic       arready;
  } pins_t;

  localparam int unsigned PinBits = $bits(pins_t);

  import "DPI-C" function void axi_memory_reset(input int unsigned beat_bytes);
  import "DPI-C" function int unsigned axi_memory_step(
    input longint unsigned cycle,
    input int unsigned fire,
    input longint unsigned ar,
    input longint unsigned aw,
    input bit [255:0] wdata,
    input int unsigned wstrb,
    inout bit [255:0] rdata
  );

  pins_t pins_q;
  bit [255:0] rdata_q;
  longint unsigned cycle_q;
  logic [5:0] fire;

  assign fire = {
    bvalid_o && !bready_i,
    rvalid_o && !rready_i,
    wlast_i,
    wvalid_i && wready_o,
    awvalid_i && awready_o,
    arvalid_i && arready_o
  };

  assign arready_o = pins_q.arready;
  assign awready_o = pins_q.awready;
  assign wready_o = pins_q.wready;
  assign rvalid_o = pins_q.rvalid;
  assign rlast_o = pins_q.rlast;
  assign rresp_o = pins_q.rresp;
  assign rid_o = pins_q.rid[IdWidth-1:0];
  assign rdata_o = rdata_q[DataWidth-1:0];
  assign bvalid_o = pins_q.bvalid;
  assign bresp_o = pins_q.bresp;
  assign bid_o = pins_q.bid[IdWidth-1:0];

  // The model is asked only in cycles in which something can happen.
  // The model is reset in step with the clock; the design that it serves is not.
  /* verilator lint_off SYNCASYNCNET */
  always_ff @(posedge clk_i) begin
    cycle_q <= cycle_q + 64'd1;
    if (!rst_ni) begin
      axi_memory_reset(StrbWidth);
      cycle_q <= 64'd0;
      pins_q  <= '{arready: 1'b1, awready: 1'b1, wready: 1'b1, default: '0};
    end else if (pins_q.busy || arvalid_i || awvalid_i || wvalid_i) begin
      automatic bit [255:0] rdata = rdata_q;
      pins_q <= PinBits'(axi_memory_step(
          cycle_q,
          32'(fire),
          {
            12'd0, 4'(arid_i), arlen_i, 40'(araddr_i)
          },
          {
            12'd0, 4'(awid_i), awlen_i, 40'(awaddr_i)
          },
          256'(wdata_i),
          32'(wstrb_i),
          rdata
      ));
      rdata_q <= rdata;
    end
  end
  /* verilator lint_on SYNCASYNCNET */

  axi_protocol #(
    .DataWidth(DataWidth),
    .AddrWidth(AddrWidth),
    .IdWidth  (IdWidth)
  ) u_protocol (
    .clk_i,
    .rst_ni,
    .awid_i,
    .awaddr_i,
    .awlen_i,
    .awsize_i,
    .awburst_i,
    .awvalid_i,
    .awready_i   (awready_o),
    .wdata_i,
    .wstrb_i,
    .wlast_i,
    .wvalid_i,
    .wready_i    (wready_o),
    .bid_i       (bid_o),
    .bresp_i     (bresp_o),
    .bvalid_i    (bvalid_o),
    .bready_i,
    .arid_i,
    .araddr_i,
    .arlen_i,
    .arsize_i,
    .arburst_i,
    .arvalid_i,
    .arready_i   (arready_o),
    .rid_i       (rid_o),
    .rdata_i     (rdata_o),
    .rresp_i     (rresp_o),
    .rlast_i     (rlast_o),
    .rvalid_i    (rvalid_o),
    .rready_i,
    .last_wrong_i(pins_q.last_wrong)
  );
endmodule

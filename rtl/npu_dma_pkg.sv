// What a DMA engine hands to its two walks: count2 groups of count1 runs of count0 beats.
package npu_dma_pkg;

  localparam int unsigned BEAT_BITS = $clog2(npu_pkg::BUS_BYTES);
  localparam int unsigned BEAT_AW = npu_pkg::DRAM_AW - BEAT_BITS;  // DRAM address in beats
  localparam int unsigned PAGE_BITS = 12 - BEAT_BITS;  // beats of a 4 KiB page
  localparam int unsigned BURST_BEATS = 256;

  typedef struct packed {
    logic [11:0] count2;
    logic [11:0] count1;
    logic [15:0] count0;
  } counts_t;

  typedef struct packed {
    logic [BEAT_AW-1:0] base;
    logic [23:0] stride2;
    logic [23:0] stride1;
    counts_t counts;
  } dram_walk_t;

  typedef struct packed {
    logic [15:0] base;
    logic [15:0] stride2;
    logic [15:0] stride1;
    logic [15:0] stride0;
    counts_t counts;
  } local_walk_t;

endpackage

// What the parts of the row engine hand one another: a job (an instruction in the form that suits
// the walk and the datapath) and a step (what one cycle of the walk asks for).
package npu_rows_pkg;

  typedef enum logic [1:0] {
    KindLookup,
    KindSoftmax,
    KindNorm
  } kind_e;

  // A pixel's blocks are walked once a pass. LOOKUP has the last one, LAYERNORM the last two.
  typedef enum logic [1:0] {
    PassMax,  // the largest element
    PassSum,  // a sum over all elements
    PassOut   // results are written
  } pass_e;

  // Rows of a tensor: base + row·row_stride + column·col_stride + block·block_stride.
  typedef struct packed {
    logic [15:0] base;
    logic [15:0] row_stride;
    logic [15:0] col_stride;
    logic [15:0] block_stride;
  } tensor_t;

  typedef struct packed {
    kind_e kind;
    logic lut;  // which table
    tensor_t src;
    tensor_t dst;
    logic [11:0] out_h;
    logic [11:0] out_w;
    logic [11:0] blocks;
    logic [5:0] tail;
    logic [12:0] count;  // channels of a pixel, of at most 128 blocks
    logic [4:0] gain_bits;
    logic [46:0] epsilon;
    logic [15:0] par_base;
    logic [7:0] par_stride;
    logic signed [7:0] zero_point;
    logic signed [7:0] clamp_min;
    logic signed [7:0] clamp_max;
  } job_t;

  // A step reads one row, or only the second parameter row of a block.
  typedef struct packed {
    pass_e pass;
    logic second;  // the second parameter row of the block before; no row
    logic first_block;
    logic last_block;
    logic final_step;  // the last one that writes
    logic [15:0] dst_row;
  } step_t;

  // Cycles between the end of a pass and the first step of the next one.
  localparam logic [5:0] WAIT_MAX = 6'd1;  // the largest element is ready
  localparam logic [5:0] WAIT_RECIPROCAL = 6'd17;  // the sum of exponentials has its reciprocal
  localparam logic [5:0] WAIT_ROOT = 6'd59;  // the variance has the reciprocal of its root
  localparam logic [5:0] WAIT_NORM = 6'd1;  // LAYERNORM writes later than the others

endpackage

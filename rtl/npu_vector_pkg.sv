// What the parts of the vector engine hand one another: a job (an instruction in the form that
// suits the walk and the datapath) and a step (what one cycle of the walk asks for).
package npu_vector_pkg;

  // The last four are of two activation rows: a window of two, whose elements lie in two tensors.
  typedef enum logic [2:0] {
    SourceAcc,  // accumulator rows
    SourceMax,  // maximum over a window of activation rows
    SourceSum,  // sum over a window of activation rows
    SourceAdd,  // scaled one by one, then added
    SourceProduct,
    SourceLesser,
    SourceGreater
  } source_e;

  // How the source's value becomes an integer near the result; the first five as in an instruction.
  typedef enum logic [2:0] {
    ScaleFloat,
    ScaleTflite,
    ScaleUp,
    ScaleEven,
    ScaleAway,
    ScaleFixed,  // of sums only: two integer products, divided by a power of two
    ScaleNone  // as it is
  } scale_e;

  // Where a value goes that lies half way between two integers.
  typedef enum logic [1:0] {
    TieUp,
    TieEven,
    TieAway   // from zero
  } tie_e;

  // Rows of a tensor: base + block·block_stride + row·row_stride + column·col_stride.
  typedef struct packed {
    logic [15:0] base;
    logic [15:0] row_stride;
    logic [15:0] col_stride;
    logic [15:0] block_stride;
  } tensor_t;

  typedef struct packed {
    source_e source;
    scale_e scale;
    logic subtract;
    logic a_scalar;  // lane 0 stands for all lanes
    logic b_scalar;
    logic acc_bank;
    tensor_t a;
    tensor_t b;
    tensor_t dst;
    logic [11:0] in_h;
    logic [11:0] in_w;
    logic signed [11:0] origin_h;
    logic signed [11:0] origin_w;
    logic [4:0] stride_h;
    logic [4:0] stride_w;
    logic [4:0] dilation_h;
    logic [4:0] dilation_w;
    logic [4:0] window_h;
    logic [4:0] window_w;
    logic [11:0] out_h;
    logic [11:0] out_w;
    logic [11:0] blocks;
    logic [5:0] tail;
    logic [2:0] params;  // parameter rows of a block
    logic [15:0] par_base;
    logic [7:0] par_stride;
    logic signed [7:0] a_zero_point;
    logic signed [7:0] b_zero_point;
    logic signed [7:0] zero_point;
    logic signed [7:0] clamp_min;
    logic signed [7:0] clamp_max;
  } job_t;

  // A step reads one row: of parameters (`param`), or one element of a window.
  typedef struct packed {
    logic param;
    logic [2:0] index;  // which parameter row of the block
    logic in_range;  // not padding
    logic first;  // first element of a window
    logic last;  // last element of a window
    logic last_block;
    logic final_step;  // last step of the job
    logic [15:0] dst_row;
  } step_t;

  // What a lane of the requantizer needs to know of one of its stages.
  typedef struct packed {
    logic valid;
    logic param;
    logic [2:0] index;
    logic last;  // the only operand, or the second one
  } lane_step_t;

  // Whether a source reads two tensors.
  function automatic logic is_pair(source_e source);
    return source >= SourceAdd;
  endfunction

  function automatic scale_e scale_of_mode(logic [2:0] mode);
    unique case (mode)
      3'd0: return ScaleFloat;
      3'd1: return ScaleTflite;
      3'd2: return ScaleUp;
      3'd3: return ScaleEven;
      default: return ScaleAway;
    endcase
  endfunction

  function automatic scale_e scale_of_add_mode(logic [2:0] mode);
    unique case (mode)
      3'd0: return ScaleFloat;
      3'd1: return ScaleFixed;
      default: return ScaleTflite;
    endcase
  endfunction

endpackage

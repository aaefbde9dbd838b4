// Purpose: types inside the matrix engine. `job_t` is what conv and dwconv have in common, so that
// everything behind the decoder serves both.

package npu_matrix_pkg;

  typedef struct packed {
    logic depthwise;
    logic wide;  // depthwise with three adjacent taps a cycle
    logic transposed;  // conv whose weight rows are output lanes
    logic accumulate;
    logic acc_bank;
    logic [15:0] acc_base;
    logic [15:0] wgt_base;
    logic [15:0] in_base;
    logic [15:0] in_row_stride;
    logic [15:0] in_col_stride;
    logic [15:0] in_block_stride;
    logic [11:0] in_h;
    logic [11:0] in_w;
    logic signed [11:0] origin_h;
    logic signed [11:0] origin_w;
    logic [4:0] row_step;  // input rows between output rows
    logic [4:0] col_step;  // input columns between streamed columns
    logic [4:0] krow_step;  // input rows between kernel rows
    logic [4:0] kcol_step;  // input columns between kernel columns or groups of them
    logic [4:0] emit_step;  // streamed columns between output columns
    logic [4:0] kernel_h;
    logic [4:0] kernel_w;  // kernel columns or groups of them
    logic [11:0] outer;  // output blocks of conv, channel blocks of dwconv
    logic [11:0] inner;  // input blocks of conv
    logic [11:0] out_h;
    logic [11:0] out_w;
    logic [5:0] in_tail;
    logic [5:0] out_tail;
    logic signed [7:0] input_zero_point;
    logic signed [7:0] weight_zero_point;
  } job_t;

  // What travels with one streamed input column.
  typedef struct packed {
    logic        in_range;    // not padding
    logic        first;       // first column of a weight tile: the shadow weights become active
    logic        in_last;     // last input block: in_tail applies
    logic        out_last;    // last output block: out_tail applies
    logic        emit;        // completes an accumulator row
    logic        overwrite;   // that row's old contents do not count
    logic        final_tile;  // no later tile changes that row
    logic [15:0] acc_row;
  } column_t;

  typedef logic [npu_pkg::LANES-1:0][8:0] diff_row_t;  // elements minus their zero point

  function automatic job_t decode_conv(npu_pkg::conv_t c);
    return
    '{
        depthwise: 1'b0,
        wide: 1'b0,
        transposed: c.transposed,
        accumulate: c.accumulate,
        acc_bank: c.acc_bank,
        acc_base: c.acc_base,
        wgt_base: c.wgt_base,
        in_base: c.in_base,
        in_row_stride: c.in_row_stride,
        in_col_stride: c.in_col_stride,
        in_block_stride: c.in_block_stride,
        in_h: c.in_h,
        in_w: c.in_w,
        origin_h: c.origin_h,
        origin_w: c.origin_w,
        row_step: c.stride_h,
        col_step: c.stride_w,
        krow_step: c.dilation_h,
        kcol_step: c.dilation_w,
        emit_step: 5'd1,
        kernel_h: c.kernel_h,
        kernel_w: c.kernel_w,
        outer: c.out_blocks,
        inner: c.in_blocks,
        out_h: c.out_h,
        out_w: c.out_w,
        in_tail: c.in_tail,
        out_tail: c.out_tail,
        input_zero_point: c.input_zero_point,
        weight_zero_point: c.weight_zero_point
    }
    ;
  endfunction

  function automatic job_t decode_dwconv(npu_pkg::dwconv_t c);
    return
    '{
        depthwise: 1'b1,
        wide: c.wide,
        transposed: 1'b0,
        accumulate: c.accumulate,
        acc_bank: c.acc_bank,
        acc_base: c.acc_base,
        wgt_base: c.wgt_base,
        in_base: c.in_base,
        in_row_stride: c.in_row_stride,
        in_col_stride: c.in_col_stride,
        in_block_stride: c.in_block_stride,
        in_h: c.in_h,
        in_w: c.in_w,
        origin_h: c.origin_h,
        origin_w: c.origin_w,
        row_step: c.stride_h,
        col_step: c.wide ? 5'd1 : c.stride_w,
        krow_step: c.dilation_h,
        kcol_step: c.wide ? 5'(npu_pkg::DEPTHWISE_TAPS) : c.dilation_w,
        emit_step: c.wide ? c.stride_w : 5'd1,
        kernel_h: c.kernel_h,
        kernel_w: c.groups_w,
        outer: c.blocks,
        inner: 12'd1,
        out_h: c.out_h,
        out_w: c.out_w,
        in_tail: 6'(npu_pkg::LANES),
        out_tail: c.tail,
        input_zero_point: c.input_zero_point,
        weight_zero_point: c.weight_zero_point
    }
    ;
  endfunction

endpackage

// Turns DRAIN, POOL, ADD and BINARY into one form: a walk over blocks, rows, columns and a window.
// DRAIN is a window of one accumulator row. ADD and BINARY are windows of two columns, of which the
// first lies in tensor a and the second in tensor b at the same place (dilation 0).
// Combinational. Meaningful while `en_i` is high (which lets simulation skip the work).
module npu_vector_decode (
  input  logic                 en_i,
  input  npu_pkg::instr_t      instr_i,
  output npu_vector_pkg::job_t job_o
);
  npu_pkg::drain_t drain;
  npu_pkg::pool_t pool;
  npu_pkg::add_t add;
  npu_pkg::binary_t binary;

  assign drain = instr_i;
  assign pool = instr_i;
  assign add = instr_i;
  assign binary = instr_i;

  // Parameter rows of a block: bias and multiplier, or bias, mantissa and shift.
  function automatic logic [2:0] requantize_rows(npu_vector_pkg::scale_e scale);
    return scale == npu_vector_pkg::ScaleFloat ? 3'd2 : 3'd3;
  endfunction

  always_comb begin
    job_o = '0;
    job_o.in_h = '1;  // no padding
    job_o.in_w = '1;
    job_o.stride_h = 5'd1;
    job_o.stride_w = 5'd1;
    job_o.window_h = 5'd1;
    job_o.window_w = 5'd1;
    if (en_i) begin
      unique case (pool.opcode)
        npu_pkg::OP_POOL: begin
          job_o.source = pool.sum ? npu_vector_pkg::SourceSum : npu_vector_pkg::SourceMax;
          job_o.a = {pool.in_base, pool.in_row_stride, pool.in_col_stride, pool.in_block_stride};
          job_o.dst = {
            pool.dst_base, pool.dst_row_stride, pool.dst_col_stride, pool.dst_block_stride
          };
          job_o.in_h = pool.in_h;
          job_o.in_w = pool.in_w;
          job_o.origin_h = pool.origin_h;
          job_o.origin_w = pool.origin_w;
          job_o.stride_h = pool.stride_h;
          job_o.stride_w = pool.stride_w;
          job_o.dilation_h = pool.dilation_h;
          job_o.dilation_w = pool.dilation_w;
          job_o.window_h = pool.kernel_h;
          job_o.window_w = pool.kernel_w;
          job_o.out_h = pool.out_h;
          job_o.out_w = pool.out_w;
          job_o.blocks = pool.blocks;
          job_o.tail = pool.tail;
          job_o.scale = pool.sum ? npu_vector_pkg::scale_of_mode(pool.mode) :
              npu_vector_pkg::ScaleNone;
          job_o.params = pool.sum ? requantize_rows(job_o.scale) : 3'd0;
          job_o.par_base = pool.par_base;
          job_o.par_stride = pool.par_stride;
          job_o.a_zero_point = pool.sum ? pool.input_zero_point : '0;
          job_o.zero_point = pool.sum ? pool.zero_point : '0;
          job_o.clamp_min = pool.clamp_min;
          job_o.clamp_max = pool.clamp_max;
        end
        npu_pkg::OP_ADD: begin
          job_o.source = npu_vector_pkg::SourceAdd;
          job_o.scale = npu_vector_pkg::scale_of_add_mode(add.mode);
          job_o.subtract = add.subtract;
          job_o.a = {add.a_base, add.a_row_stride, add.a_col_stride, add.a_block_stride};
          job_o.b = {add.b_base, add.b_row_stride, add.b_col_stride, add.b_block_stride};
          job_o.dst = {add.dst_base, add.dst_row_stride, add.dst_col_stride, add.dst_block_stride};
          job_o.window_w = 5'd2;
          job_o.out_h = add.out_h;
          job_o.out_w = add.out_w;
          job_o.blocks = add.blocks;
          job_o.tail = add.tail;
          job_o.params = job_o.scale == npu_vector_pkg::ScaleTflite ? 3'd6 : 3'd3;
          job_o.par_base = add.par_base;
          job_o.par_stride = add.par_stride;
          job_o.a_zero_point = add.a_zero_point;
          job_o.b_zero_point = add.b_zero_point;
          job_o.a_scalar = add.a_scalar;
          job_o.b_scalar = add.b_scalar;
          job_o.zero_point = add.zero_point;
          job_o.clamp_min = add.clamp_min;
          job_o.clamp_max = add.clamp_max;
        end
        npu_pkg::OP_BINARY: begin
          unique case (binary.kind)
            2'd0: job_o.source = npu_vector_pkg::SourceProduct;
            2'd1: job_o.source = npu_vector_pkg::SourceLesser;
            default: job_o.source = npu_vector_pkg::SourceGreater;
          endcase
          job_o.scale = npu_vector_pkg::scale_of_mode(binary.mode);
          job_o.a = {
            binary.a_base, binary.a_row_stride, binary.a_col_stride, binary.a_block_stride
          };
          job_o.b = {
            binary.b_base, binary.b_row_stride, binary.b_col_stride, binary.b_block_stride
          };
          job_o.dst = {
            binary.dst_base, binary.dst_row_stride, binary.dst_col_stride, binary.dst_block_stride
          };
          job_o.window_w = 5'd2;
          job_o.out_h = binary.out_h;
          job_o.out_w = binary.out_w;
          job_o.blocks = binary.blocks;
          job_o.tail = binary.tail;
          job_o.params = requantize_rows(job_o.scale);
          job_o.par_base = binary.par_base;
          job_o.par_stride = binary.par_stride;
          job_o.a_zero_point = binary.a_zero_point;
          job_o.b_zero_point = binary.b_zero_point;
          job_o.a_scalar = binary.a_scalar;
          job_o.b_scalar = binary.b_scalar;
          job_o.zero_point = binary.zero_point;
          job_o.clamp_min = binary.clamp_min;
          job_o.clamp_max = binary.clamp_max;
        end
        default: begin
          job_o.source = npu_vector_pkg::SourceAcc;
          job_o.acc_bank = drain.acc_bank;
          job_o.a.base = drain.acc_base;
          job_o.a.col_stride = 16'd1;
          job_o.a.row_stride = {4'b0, drain.out_w};
          job_o.a.block_stride = {4'b0, drain.out_w} * {4'b0, drain.out_h};
          job_o.dst = {
            drain.dst_base, drain.dst_row_stride, drain.dst_col_stride, drain.dst_block_stride
          };
          job_o.out_h = drain.out_h;
          job_o.out_w = drain.out_w;
          job_o.blocks = drain.blocks;
          job_o.tail = drain.tail;
          job_o.scale = npu_vector_pkg::scale_of_mode(drain.mode);
          job_o.params = requantize_rows(job_o.scale);
          job_o.par_base = drain.par_base;
          job_o.par_stride = drain.par_stride;
          job_o.zero_point = drain.zero_point;
          job_o.clamp_min = drain.clamp_min;
          job_o.clamp_max = drain.clamp_max;
        end
      endcase
    end
  end
endmodule

// Walks a job of the vector engine, one step a cycle: for each block its parameter rows, then for
// each output row and column the elements of the window, rows first.
// Latency: `start_i` in cycle t gives the first step in cycle t+2; the steps follow one another
// without a gap. Backpressure: none; the memories always answer.
module npu_vector_walk (
  input logic clk_i,
  input logic rst_ni,

  input logic                 start_i,  // only after the last step of the job before
  input npu_vector_pkg::job_t job_i,    // stable from start_i on

  output logic                         valid_o,
  output npu_vector_pkg::step_t        step_o,
  output logic                  [15:0] src_row_o,
  output logic                  [15:0] par_row_o
);
  typedef logic signed [18:0] place_t;  // a row or column of the input, padding included

  logic active_d, active_q;
  logic [2:0] index_d, index_q;  // next parameter row of the block
  logic [4:0] kh_d, kh_q, kw_d, kw_q;
  logic [11:0] oh_d, oh_q, ow_d, ow_q, block_d, block_q;
  place_t in_row_d, in_row_q, in_col_d, in_col_q;  // input place of the window's first element
  place_t tap_row_d, tap_row_q, tap_col_d, tap_col_q;  // distance from there
  logic [15:0] a_base_d, a_base_q, b_base_d, b_base_q, dst_base_d, dst_base_q;
  logic [15:0] par_base_d, par_base_q;
  logic kw_last, kh_last, ow_last, oh_last, block_last, in_params, second;
  place_t row, col;
  npu_vector_pkg::step_t step_d;
  logic [15:0] src_row_d;
  logic unused_job;

  assign unused_job = ^{
    job_i.scale, job_i.subtract, job_i.a_scalar, job_i.b_scalar, job_i.acc_bank, job_i.tail,
    job_i.a_zero_point, job_i.b_zero_point, job_i.zero_point, job_i.clamp_min, job_i.clamp_max
  };

  function automatic logic [15:0] offset(logic [11:0] h, logic [15:0] row_stride, logic [11:0] w,
                                         logic [15:0] col_stride);
    return {4'b0, h} * row_stride + {4'b0, w} * col_stride;
  endfunction

  assign kw_last = kw_q == job_i.window_w - 5'd1;
  assign kh_last = kh_q == job_i.window_h - 5'd1;
  assign ow_last = ow_q == job_i.out_w - 12'd1;
  assign oh_last = oh_q == job_i.out_h - 12'd1;
  assign block_last = block_q == job_i.blocks - 12'd1;
  assign in_params = index_q != job_i.params;
  assign second = npu_vector_pkg::is_pair(job_i.source) && kw_q[0];

  always_comb begin
    row = in_row_q + tap_row_q;
    col = in_col_q + tap_col_q;
    step_d = '0;
    src_row_d = '0;
    if (active_q) begin
      step_d.param = in_params;
      step_d.index = index_q;
      step_d.in_range = row >= 0 && row < place_t'({1'b0, job_i.in_h}) && col >= 0 &&
          col < place_t'({1'b0, job_i.in_w});
      step_d.first = kh_q == '0 && kw_q == '0;
      step_d.last = kh_last && kw_last;
      step_d.last_block = block_last;
      step_d.final_step = !in_params && kw_last && kh_last && ow_last && oh_last && block_last;
      step_d.dst_row = dst_base_q + offset(oh_q, job_i.dst.row_stride, ow_q, job_i.dst.col_stride);
      src_row_d = second ?
          b_base_q + offset(row[11:0], job_i.b.row_stride, col[11:0], job_i.b.col_stride) :
          a_base_q + offset(row[11:0], job_i.a.row_stride, col[11:0], job_i.a.col_stride);
    end
  end

  always_comb begin
    active_d = active_q;
    index_d = index_q;
    {kw_d, kh_d, ow_d, oh_d, block_d} = {kw_q, kh_q, ow_q, oh_q, block_q};
    {in_row_d, in_col_d, tap_row_d, tap_col_d} = {in_row_q, in_col_q, tap_row_q, tap_col_q};
    {a_base_d, b_base_d, dst_base_d} = {a_base_q, b_base_q, dst_base_q};
    par_base_d = par_base_q;
    if (start_i) begin
      active_d = 1'b1;
      index_d = '0;
      {kw_d, kh_d, ow_d, oh_d, block_d} = '0;
      {tap_row_d, tap_col_d} = '0;
      in_row_d = place_t'(job_i.origin_h);
      in_col_d = place_t'(job_i.origin_w);
      {a_base_d, b_base_d, dst_base_d} = {job_i.a.base, job_i.b.base, job_i.dst.base};
      par_base_d = job_i.par_base;
    end else if (active_q && in_params) begin
      index_d = index_q + 3'd1;
    end else if (active_q) begin
      kw_d = kw_last ? '0 : kw_q + 5'd1;
      tap_col_d = kw_last ? '0 : tap_col_q + place_t'({1'b0, job_i.dilation_w});
      if (kw_last) begin
        kh_d = kh_last ? '0 : kh_q + 5'd1;
        tap_row_d = kh_last ? '0 : tap_row_q + place_t'({1'b0, job_i.dilation_h});
      end
      if (kw_last && kh_last) begin
        ow_d = ow_last ? '0 : ow_q + 12'd1;
        in_col_d = ow_last ? place_t'(job_i.origin_w) : in_col_q + place_t'({1'b0, job_i.stride_w});
      end
      if (kw_last && kh_last && ow_last) begin
        oh_d = oh_last ? '0 : oh_q + 12'd1;
        in_row_d = oh_last ? place_t'(job_i.origin_h) : in_row_q + place_t'({1'b0, job_i.stride_h});
      end
      if (kw_last && kh_last && ow_last && oh_last) begin
        active_d = !block_last;
        block_d = block_q + 12'd1;
        index_d = '0;
        a_base_d = a_base_q + job_i.a.block_stride;
        b_base_d = b_base_q + job_i.b.block_stride;
        dst_base_d = dst_base_q + job_i.dst.block_stride;
        par_base_d = par_base_q + {8'b0, job_i.par_stride};
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      active_q <= 1'b0;
      valid_o  <= 1'b0;
    end else begin
      active_q <= active_d;
      valid_o  <= active_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (start_i || active_q) begin
      index_q <= index_d;
      {kw_q, kh_q, ow_q, oh_q, block_q} <= {kw_d, kh_d, ow_d, oh_d, block_d};
      {in_row_q, in_col_q, tap_row_q, tap_col_q} <= {in_row_d, in_col_d, tap_row_d, tap_col_d};
      {a_base_q, b_base_q, dst_base_q} <= {a_base_d, b_base_d, dst_base_d};
      par_base_q <= par_base_d;
      step_o <= step_d;
      src_row_o <= src_row_d;
      par_row_o <= par_base_q + {13'b0, index_q};
    end
  end
endmodule

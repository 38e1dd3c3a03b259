module @jit_loss attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @empty_mesh = <[]> {stablehlo.mesh = {axes = []}}
  func.func public @main(%arg0: tensor<f32> {mhlo.memory_kind = "device", sdy.sharding = #sdy.sharding<@empty_mesh, []>}) -> (tensor<f32> {jax.result_info = "result", mhlo.memory_kind = "device"}) {
    %0 = call @closed_call(%arg0) {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<f32>) -> tensor<1xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %1:2 = stablehlo.optimization_barrier %0, %cst : tensor<1xf32>, tensor<f32>
    %cst_0 = stablehlo.constant {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<f32>) -> tensor<1xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %3:3 = stablehlo.while(%iterArg = %1#0, %iterArg_2 = %c, %iterArg_3 = %2) : tensor<1xf32>, tensor<i32>, tensor<1xf32> attributes {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}}
    cond {
      %c_4 = stablehlo.constant dense<1> : tensor<i32>
      %5 = stablehlo.compare LT, %iterArg_2, %c_4, SIGNED {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %5 : tensor<i1>
    } do {
      %5 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_2) {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<1xf32>, tensor<i32>) -> tensor<f32>
      %6 = func.call @closed_call_1(%5) {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<f32>) -> tensor<f32>
      %7 = func.call @dynamic_update_index_in_dim_2(%iterArg_3, %6, %iterArg_2) {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<1xf32>, tensor<f32>, tensor<i32>) -> tensor<1xf32>
      %c_4 = stablehlo.constant dense<1> : tensor<i32>
      %8 = stablehlo.add %iterArg_2, %c_4 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : tensor<i32>
      stablehlo.return %iterArg, %8, %7 : tensor<1xf32>, tensor<i32>, tensor<1xf32>
    }
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %4:3 = stablehlo.while(%iterArg = %3#2, %iterArg_2 = %c_1, %iterArg_3 = %1#1) : tensor<1xf32>, tensor<i32>, tensor<f32> attributes {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}}
    cond {
      %c_4 = stablehlo.constant dense<1> : tensor<i32>
      %5 = stablehlo.compare LT, %iterArg_2, %c_4, SIGNED {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %5 : tensor<i1>
    } do {
      %c_4 = stablehlo.constant dense<1> : tensor<i32>
      %5 = stablehlo.subtract %c_4, %iterArg_2 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : tensor<i32>
      %c_5 = stablehlo.constant dense<1> : tensor<i32>
      %6 = stablehlo.subtract %5, %c_5 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : tensor<i32>
      %7 = func.call @dynamic_index_in_dim_3(%iterArg, %6) {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<1xf32>, tensor<i32>) -> tensor<f32>
      %8 = func.call @closed_call_4(%iterArg_3, %7) {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %c_6 = stablehlo.constant dense<1> : tensor<i32>
      %9 = stablehlo.add %iterArg_2, %c_6 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : tensor<i32>
      stablehlo.return %iterArg, %9, %8 : tensor<1xf32>, tensor<i32>, tensor<f32>
    }
    return %4#2 : tensor<f32>
  }
  func.func private @closed_call(%arg0: tensor<f32>) -> tensor<1xf32> {
    %cst = stablehlo.constant {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<f32>) -> tensor<1xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1:3 = stablehlo.while(%iterArg = %c, %iterArg_0 = %arg0, %iterArg_1 = %0) : tensor<i32>, tensor<f32>, tensor<1xf32> attributes {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}}
    cond {
      %c_2 = stablehlo.constant dense<1> : tensor<i32>
      %2 = stablehlo.compare LT, %iterArg, %c_2, SIGNED {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %2:2 = func.call @closed_call_0(%iterArg_0) {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<f32>) -> (tensor<f32>, tensor<f32>)
      %3 = func.call @dynamic_update_index_in_dim(%iterArg_1, %2#1, %iterArg) {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<1xf32>, tensor<f32>, tensor<i32>) -> tensor<1xf32>
      %c_2 = stablehlo.constant dense<1> : tensor<i32>
      %4 = stablehlo.add %iterArg, %c_2 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : tensor<i32>
      stablehlo.return %4, %2#0, %3 : tensor<i32>, tensor<f32>, tensor<1xf32>
    }
    return %1#2 : tensor<1xf32>
  }
  func.func private @closed_call_0(%arg0: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
    %0 = stablehlo.custom_call @annotate_device_placement(%arg0) {backend_config = "", has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "pinned_host"}} : (tensor<f32>) -> tensor<f32>
    %1 = stablehlo.sine %arg0 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : tensor<f32>
    return %1, %0 : tensor<f32>, tensor<f32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<1xf32>, %arg1: tensor<f32>, %arg2: tensor<i32>) -> tensor<1xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [] {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<f32>) -> tensor<1xf32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<1xf32>, tensor<1xf32>, tensor<i32>) -> tensor<1xf32>
    return %1 : tensor<1xf32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<1xf32>, %arg1: tensor<i32>) -> tensor<f32> {
    %0 = stablehlo.dynamic_slice %arg0, %arg1, sizes = [1] {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<1xf32>, tensor<i32>) -> tensor<1xf32>
    %1 = stablehlo.reshape %0 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<1xf32>) -> tensor<f32>
    return %1 : tensor<f32>
  }
  func.func private @closed_call_1(%arg0: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.custom_call @annotate_device_placement(%arg0) {backend_config = "", has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "device", "skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<f32>) -> tensor<f32>
    %1 = stablehlo.cosine %0 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : tensor<f32>
    return %1 : tensor<f32>
  }
  func.func private @dynamic_update_index_in_dim_2(%arg0: tensor<1xf32>, %arg1: tensor<f32>, %arg2: tensor<i32>) -> tensor<1xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [] {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<f32>) -> tensor<1xf32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<1xf32>, tensor<1xf32>, tensor<i32>) -> tensor<1xf32>
    return %1 : tensor<1xf32>
  }
  func.func private @dynamic_index_in_dim_3(%arg0: tensor<1xf32>, %arg1: tensor<i32>) -> tensor<f32> {
    %0 = stablehlo.dynamic_slice %arg0, %arg1, sizes = [1] {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<1xf32>, tensor<i32>) -> tensor<1xf32>
    %1 = stablehlo.reshape %0 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : (tensor<1xf32>) -> tensor<f32>
    return %1 : tensor<f32>
  }
  func.func private @closed_call_4(%arg0: tensor<f32>, %arg1: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.multiply %arg0, %arg1 {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}} : tensor<f32>
    return %0 : tensor<f32>
  }
}

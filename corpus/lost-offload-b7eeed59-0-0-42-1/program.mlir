module @jit_loss attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @empty_mesh = <[]> {stablehlo.mesh = {axes = []}}
  func.func public @main(%arg0: tensor<1xf32> {mhlo.memory_kind = "device", sdy.sharding = #sdy.sharding<@empty_mesh, [{}]>}) -> (tensor<1xf32> {jax.result_info = "result", mhlo.memory_kind = "device"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = call @closed_call(%cst, %arg0) : (tensor<f32>, tensor<1xf32>) -> tensor<1xf32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %1:3 = stablehlo.optimization_barrier %0, %arg0, %cst_0 : tensor<1xf32>, tensor<1xf32>, tensor<f32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %3:4 = stablehlo.while(%iterArg = %1#0, %iterArg_5 = %c, %iterArg_6 = %cst_1, %iterArg_7 = %2) : tensor<1xf32>, tensor<i32>, tensor<f32>, tensor<1xf32>
    cond {
      %c_8 = stablehlo.constant dense<1> : tensor<i32>
      %6 = stablehlo.compare LT, %iterArg_5, %c_8, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %6 : tensor<i1>
    } do {
      %6 = func.call @dynamic_index_in_dim_1(%iterArg, %iterArg_5) : (tensor<1xf32>, tensor<i32>) -> tensor<f32>
      %7:2 = func.call @closed_call_2(%iterArg_6, %6) : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
      %8 = func.call @dynamic_update_index_in_dim_3(%iterArg_7, %7#1, %iterArg_5) : (tensor<1xf32>, tensor<f32>, tensor<i32>) -> tensor<1xf32>
      %c_8 = stablehlo.constant dense<1> : tensor<i32>
      %9 = stablehlo.add %iterArg_5, %c_8 : tensor<i32>
      stablehlo.return %iterArg, %9, %7#0, %8 : tensor<1xf32>, tensor<i32>, tensor<f32>, tensor<1xf32>
    }
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %c_4 = stablehlo.constant dense<0> : tensor<i32>
    %5:5 = stablehlo.while(%iterArg = %1#1, %iterArg_5 = %3#3, %iterArg_6 = %c_4, %iterArg_7 = %1#2, %iterArg_8 = %4) : tensor<1xf32>, tensor<1xf32>, tensor<i32>, tensor<f32>, tensor<1xf32>
    cond {
      %c_9 = stablehlo.constant dense<1> : tensor<i32>
      %6 = stablehlo.compare LT, %iterArg_6, %c_9, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %6 : tensor<i1>
    } do {
      %c_9 = stablehlo.constant dense<1> : tensor<i32>
      %6 = stablehlo.subtract %c_9, %iterArg_6 : tensor<i32>
      %c_10 = stablehlo.constant dense<1> : tensor<i32>
      %7 = stablehlo.subtract %6, %c_10 : tensor<i32>
      %8 = func.call @dynamic_index_in_dim(%iterArg, %7) : (tensor<1xf32>, tensor<i32>) -> tensor<f32>
      %9 = func.call @dynamic_index_in_dim(%iterArg_5, %7) : (tensor<1xf32>, tensor<i32>) -> tensor<f32>
      %10:2 = func.call @closed_call_4(%iterArg_7, %8, %9) : (tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
      %11 = func.call @dynamic_update_index_in_dim_3(%iterArg_8, %10#1, %7) : (tensor<1xf32>, tensor<f32>, tensor<i32>) -> tensor<1xf32>
      %c_11 = stablehlo.constant dense<1> : tensor<i32>
      %12 = stablehlo.add %iterArg_6, %c_11 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_5, %12, %10#0, %11 : tensor<1xf32>, tensor<1xf32>, tensor<i32>, tensor<f32>, tensor<1xf32>
    }
    return %5#4 : tensor<1xf32>
  }
  func.func private @closed_call(%arg0: tensor<f32>, %arg1: tensor<1xf32>) -> tensor<1xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1:4 = stablehlo.while(%iterArg = %arg1, %iterArg_0 = %c, %iterArg_1 = %arg0, %iterArg_2 = %0) : tensor<1xf32>, tensor<i32>, tensor<f32>, tensor<1xf32>
    cond {
      %c_3 = stablehlo.constant dense<1> : tensor<i32>
      %2 = stablehlo.compare LT, %iterArg_0, %c_3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %2 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_0) : (tensor<1xf32>, tensor<i32>) -> tensor<f32>
      %3:2 = func.call @closed_call_0(%iterArg_1, %2) : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
      %4 = func.call @dynamic_update_index_in_dim(%iterArg_2, %3#1, %iterArg_0) : (tensor<1xf32>, tensor<f32>, tensor<i32>) -> tensor<1xf32>
      %c_3 = stablehlo.constant dense<1> : tensor<i32>
      %5 = stablehlo.add %iterArg_0, %c_3 : tensor<i32>
      stablehlo.return %iterArg, %5, %3#0, %4 : tensor<1xf32>, tensor<i32>, tensor<f32>, tensor<1xf32>
    }
    return %1#3 : tensor<1xf32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<1xf32>, %arg1: tensor<i32>) -> tensor<f32> {
    %0 = stablehlo.dynamic_slice %arg0, %arg1, sizes = [1] : (tensor<1xf32>, tensor<i32>) -> tensor<1xf32>
    %1 = stablehlo.reshape %0 : (tensor<1xf32>) -> tensor<f32>
    return %1 : tensor<f32>
  }
  func.func private @closed_call_0(%arg0: tensor<f32>, %arg1: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [] x [], precision = [DEFAULT, DEFAULT] : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %1 = stablehlo.custom_call @annotate_device_placement(%0) {backend_config = "", has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "pinned_host"}} : (tensor<f32>) -> tensor<f32>
    return %0, %1 : tensor<f32>, tensor<f32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<1xf32>, %arg1: tensor<f32>, %arg2: tensor<i32>) -> tensor<1xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2 : (tensor<1xf32>, tensor<1xf32>, tensor<i32>) -> tensor<1xf32>
    return %1 : tensor<1xf32>
  }
  func.func private @dynamic_index_in_dim_1(%arg0: tensor<1xf32>, %arg1: tensor<i32>) -> tensor<f32> {
    %0 = stablehlo.dynamic_slice %arg0, %arg1, sizes = [1] : (tensor<1xf32>, tensor<i32>) -> tensor<1xf32>
    %1 = stablehlo.reshape %0 : (tensor<1xf32>) -> tensor<f32>
    return %1 : tensor<f32>
  }
  func.func private @closed_call_2(%arg0: tensor<f32>, %arg1: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
    %0 = stablehlo.custom_call @annotate_device_placement(%arg1) {backend_config = "", has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "device"}} : (tensor<f32>) -> tensor<f32>
    return %0, %arg0 : tensor<f32>, tensor<f32>
  }
  func.func private @dynamic_update_index_in_dim_3(%arg0: tensor<1xf32>, %arg1: tensor<f32>, %arg2: tensor<i32>) -> tensor<1xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2 : (tensor<1xf32>, tensor<1xf32>, tensor<i32>) -> tensor<1xf32>
    return %1 : tensor<1xf32>
  }
  func.func private @closed_call_4(%arg0: tensor<f32>, %arg1: tensor<f32>, %arg2: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
    %0 = stablehlo.dot_general %arg0, %arg2, contracting_dims = [] x [], precision = [DEFAULT, DEFAULT] : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %1 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [] x [], precision = [DEFAULT, DEFAULT] : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %1, %0 : tensor<f32>, tensor<f32>
  }
}

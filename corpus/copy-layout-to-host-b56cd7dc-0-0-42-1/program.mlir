module @jit_program attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["device"=1]> {stablehlo.mesh = {axes = [{name = "device", size = 1 : i64}]}}
  func.func public @main(%arg0: tensor<5x5xbf16> {mhlo.memory_kind = "pinned_host", sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) -> (tensor<2x5x5xbf16> {jax.result_info = "result", mhlo.memory_kind = "pinned_host", sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {}]>}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<bf16>) -> tensor<2x5x5xbf16>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1:3 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %c, %iterArg_1 = %0) : tensor<5x5xbf16>, tensor<i32>, tensor<2x5x5xbf16>
    cond {
      %c_2 = stablehlo.constant dense<2> : tensor<i32>
      %3 = stablehlo.compare LT, %iterArg_0, %c_2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %3 : tensor<i1>
    } do {
      %3 = func.call @closed_call(%iterArg) : (tensor<5x5xbf16>) -> tensor<5x5xbf16>
      %4 = func.call @dynamic_update_index_in_dim(%iterArg_1, %3, %iterArg_0) : (tensor<2x5x5xbf16>, tensor<5x5xbf16>, tensor<i32>) -> tensor<2x5x5xbf16>
      %c_2 = stablehlo.constant dense<1> : tensor<i32>
      %5 = stablehlo.add %iterArg_0, %c_2 : tensor<i32>
      stablehlo.return %iterArg, %5, %4 : tensor<5x5xbf16>, tensor<i32>, tensor<2x5x5xbf16>
    }
    %2 = stablehlo.custom_call @annotate_device_placement(%1#2) {backend_config = "", has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "pinned_host"}} : (tensor<2x5x5xbf16>) -> tensor<2x5x5xbf16>
    return %2 : tensor<2x5x5xbf16>
  }
  func.func private @closed_call(%arg0: tensor<5x5xbf16>) -> tensor<5x5xbf16> {
    return %arg0 : tensor<5x5xbf16>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<2x5x5xbf16>, %arg1: tensor<5x5xbf16>, %arg2: tensor<i32>) -> tensor<2x5x5xbf16> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<5x5xbf16>) -> tensor<1x5x5xbf16>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0 : (tensor<2x5x5xbf16>, tensor<1x5x5xbf16>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x5x5xbf16>
    return %1 : tensor<2x5x5xbf16>
  }
}

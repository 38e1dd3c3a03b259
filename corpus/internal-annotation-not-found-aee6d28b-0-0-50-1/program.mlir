module @jit_program attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["device"=1]> {stablehlo.mesh = {axes = [{name = "device", size = 1 : i64}]}}
  func.func public @main(%arg0: tensor<2x1xf32> {mhlo.memory_kind = "pinned_host", sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg1: tensor<1x1xf32> {mhlo.memory_kind = "pinned_host", sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg2: tensor<i32> {mhlo.memory_kind = "pinned_host", sdy.sharding = #sdy.sharding<@mesh, []>}) -> (tensor<1x1xf32> {jax.result_info = "result", mhlo.memory_kind = "device"}) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_update_slice %arg0, %arg1, %arg2, %c : (tensor<2x1xf32>, tensor<1x1xf32>, tensor<i32>, tensor<i32>) -> tensor<2x1xf32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_slice %0, %arg2, %c_0, sizes = [1, 1] : (tensor<2x1xf32>, tensor<i32>, tensor<i32>) -> tensor<1x1xf32>
    %2 = stablehlo.custom_call @annotate_device_placement(%1) {backend_config = "", has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "device"}} : (tensor<1x1xf32>) -> tensor<1x1xf32>
    return %2 : tensor<1x1xf32>
  }
}

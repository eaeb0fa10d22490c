"""Mistakes planted in a dozen languages by somebody who had read what the rules are for and none of their code: each is found, as an
error or a warning by that rule, and nothing else is that is not named as allowed beside it."""

import json
import os

from harness import check, main

CASES = []


def c(path, rules, text, allowed=""):
    CASES.append((path, set(rules.split()), text, set(allowed.split())))


c('a1/main.tf', 'SKU001', '''resource "azurerm_linux_virtual_machine" "old" {
  name                = "vm"
  resource_group_name = "rg"
  location            = "eastus"
  size                = "Standard_NC6"
  admin_username      = "u"
  network_interface_ids = []
  source_image_reference {
    publisher = "microsoft-dsvm"
    offer     = "ubuntu-hpc"
    sku       = "2204"
    version   = "latest"
  }
  os_disk {
    caching = "ReadWrite"
    storage_account_type = "Premium_LRS"
  }
}
''', 'COST001')
c('a2/main.bicep', 'SKU001', '''param size string = 'Standard_ND24rs'
resource vm 'Microsoft.Compute/virtualMachines@2024-07-01' = {
  name: 'vm'
  location: 'eastus'
  properties: {
    hardwareProfile: {
      vmSize: size
    }
  }
}
''', 'COST001 SKU011')
c('a3/azuredeploy.json', 'SKU001', '''{
  "$schema": "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
  "contentVersion": "1.0.0.0",
  "parameters": {"sz": {"type": "string", "defaultValue": "Standard_NV12"}},
  "resources": [
    {"type": "Microsoft.Compute/virtualMachines", "apiVersion": "2023-03-01", "name": "v", "location": "eastus",
     "properties": {"hardwareProfile": {"vmSize": "[parameters('sz')]"}}}
  ]
}
''', 'COST001 SKU011')
c('a4/deploy.sh', 'SKU001', '''#!/bin/bash
SIZE=Standard_NC24r
az aks nodepool add -g rg --cluster-name c -n gpu --node-vm-size "$SIZE" --node-count 1 --node-taints sku=gpu:NoSchedule --enable-cluster-autoscaler --min-count 0 --max-count 3
''')
c('a5/compute.yml', 'SKU001', '''$schema: https://azuremlschemas.azureedge.net/latest/amlCompute.schema.json
name: gpu
type: amlcompute
size: STANDARD_NC6
min_instances: 0
max_instances: 4
idle_time_before_scale_down: 120
''')
c('a6/main.tf', 'SKU003', '''resource "azurerm_kubernetes_cluster_node_pool" "g" {
  name = "g"
  kubernetes_cluster_id = "x"
  vm_size = "Standard_NC6_v3"
  node_taints = ["sku=gpu:NoSchedule"]
  auto_scaling_enabled = true
  min_count = 0
  max_count = 2
}
''')
c('b1/x.sh', 'NET001', '''#!/bin/bash
az vmss create \\
  --resource-group rg --name train \\
  --image microsoft-dsvm:ubuntu-hpc:2204:latest \\
  --vm-sku Standard_ND96asr_v4 \\
  --instance-count 4 --ppg p
''')
c('b2/main.tf', 'NET001', '''resource "azurerm_orchestrated_virtual_machine_scale_set" "t" {
  name = "t"
  resource_group_name = "rg"
  location = "eastus"
  sku_name = "Standard_ND96isr_H100_v5"
  instances = 4
  platform_fault_domain_count = 1
  source_image_reference {
    publisher = "microsoft-dsvm"
    offer = "ubuntu-hpc"
    sku = "2204"
    version = "latest"
  }
}
''')
c('b3/m.bicep', 'NET001', '''resource s 'Microsoft.Compute/virtualMachineScaleSets@2024-07-01' = {
  name: 's'
  location: 'eastus'
  sku: { name: 'Standard_ND96amsr_A100_v4', capacity: 8 }
  properties: {
    orchestrationMode: 'Uniform'
    singlePlacementGroup: false
    virtualMachineProfile: {
      storageProfile: { imageReference: { publisher: 'microsoft-dsvm', offer: 'ubuntu-hpc', sku: '2204', version: 'latest' } }
    }
  }
}
''', 'NET019 SKU017')
c('b4/main.tf', 'NET006 NET003', '''resource "azurerm_proximity_placement_group" "p" {
  name = "p"
  location = "eastus"
  resource_group_name = "rg"
}
resource "azurerm_kubernetes_cluster_node_pool" "g" {
  name = "g"
  kubernetes_cluster_id = "x"
  vm_size = "Standard_ND96isr_H100_v5"
  zones = ["1", "2", "3"]
  proximity_placement_group_id = azurerm_proximity_placement_group.p.id
  node_taints = ["sku=gpu:NoSchedule"]
  auto_scaling_enabled = true
  min_count = 0
  max_count = 8
}
''', 'NPL010')
c('b5/main.tf', 'NET004', '''resource "azurerm_virtual_network" "v" {
  name = "v"
  address_space = ["172.16.0.0/12"]
  location = "eastus"
  resource_group_name = "rg"
}
resource "azurerm_linux_virtual_machine_scale_set" "t" {
  name = "t"
  sku = "Standard_ND96asr_v4"
  instances = 2
  resource_group_name = "rg"
  location = "eastus"
  single_placement_group = true
  overprovision = false
  source_image_reference {
    publisher = "microsoft-dsvm"
    offer = "ubuntu-hpc"
    sku = "2204"
    version = "latest"
  }
}
''', 'NET005')
c('b6/job.sbatch', 'NET017', '''#!/bin/bash
#SBATCH --nodes=4
#SBATCH --gpus-per-node=8
#SBATCH --ntasks-per-node=1
#SBATCH --time=01:00:00
srun torchrun --nnodes=4 --nproc-per-node=8 --rdzv-backend=c10d --rdzv-endpoint=localhost:29500 train.py --save-interval 10 --save /ckpt
''')
c('b7/job.sbatch', 'NET014', '''#!/bin/bash
#SBATCH --nodes=2
#SBATCH --gres=gpu:8
#SBATCH --time=01:00:00
export NCCL_SOCKET_IFNAME=lo
srun torchrun --nnodes=$SLURM_NNODES --nproc-per-node=8 --rdzv-endpoint=$HEAD:29500 train.py
''')
P = '''apiVersion: v1
kind: Pod
metadata:
  name: p
spec:
  containers:
    - name: main
      image: ghcr.io/x/train:1.2
      command: ["python", "train.py"]
      resources:
%s
'''
c('c1/p.yaml', 'K8S005', P % '''        requests:
          nvidia.com/gpu: 1
        limits:
          nvidia.com/gpu: 2''', 'NET010')
c('c2/p.yaml', 'K8S006', P % '''        limits:
          nvidia.com/gpu: 500m''')
c('c3/p.yaml', 'K8S006', P % '''        limits:
          nvidia.com/gpu: 0.5''')
c('c4/p.yaml', 'K8S008', P % '''        limits:
          alpha.kubernetes.io/nvidia-gpu: 1''')
c('c5/p.yaml', 'K8S026', P % '''        limits:
          nvidia.com/gpu: 1
          nvidia.com/mig-1g.10gb: 1''', 'NET010')
c('c6/p.yaml', 'K8S029', '''apiVersion: v1
kind: Pod
metadata:
  name: p
spec:
  containers:
    - name: main
      image: ghcr.io/x/train:1.2
      tolerations:
        - key: sku
          operator: Equal
          value: gpu
          effect: NoSchedule
      resources:
        limits:
          nvidia.com/gpu: 1
''')
c('c7/h.yaml', 'K8S009', '''apiVersion: autoscaling/v2beta2
kind: HorizontalPodAutoscaler
metadata: {name: h}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: vllm}
  minReplicas: 1
  maxReplicas: 4
  metrics:
    - type: Pods
      pods: {metric: {name: q}, target: {type: AverageValue, averageValue: "5"}}
''')
c('c8/r.yaml', 'K8S025', '''apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: r}
spec:
  workerGroupSpecs:
    - groupName: g
      replicas: 2
      rayStartParams:
        num-gpus: "4"
      template:
        spec:
          containers:
            - name: ray-worker
              image: rayproject/ray:2.9.0-gpu
              resources:
                limits:
                  nvidia.com/gpu: 8
''')
c('c9/d.yaml', 'K8S023', '''apiVersion: apps/v1
kind: Deployment
metadata: {name: v}
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec:
      containers:
        - name: vllm
          image: vllm/vllm-openai:v0.6.3
          args: ["--model", "x/y", "--tensor-parallel-size", "4", "--api-key", "$(KEY)"]
          ports: [{containerPort: 8000}]
          readinessProbe: {httpGet: {path: /health, port: 8000}}
          volumeMounts: [{name: s, mountPath: /dev/shm}]
          resources:
            limits: {nvidia.com/gpu: 2}
      volumes: [{name: s, emptyDir: {medium: Memory}}]
''', 'K8S034')
c('c10/j.yaml', 'K8S024', '''apiVersion: batch/v1
kind: Job
metadata: {name: t}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: t
          image: ghcr.io/x/t:1
          command: ["/bin/bash", "-c"]
          args:
            - |
              export X=1
              torchrun --nproc_per_node=8 train.py --save /c
          resources:
            limits: {nvidia.com/gpu: 4}
          volumeMounts: [{name: s, mountPath: /dev/shm}]
      volumes: [{name: s, emptyDir: {medium: Memory}}]
''', 'K8S020')
c('c11/q.yaml', 'K8S038', '''apiVersion: v1
kind: ResourceQuota
metadata: {name: q}
spec:
  hard:
    limits.nvidia.com/gpu: "4"
''')
c('c12/p.yaml', 'K8S003', '''apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  nodeSelector: {accelerator: nvidia}
  tolerations:
    - {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}
  containers:
    - name: c
      image: ghcr.io/x/train:1.2
      command: [python, train.py]
''')
c('d1/main.tf', 'NPL004', '''resource "azurerm_kubernetes_cluster_node_pool" "g" {
  name = "g"
  kubernetes_cluster_id = "x"
  vm_size = "Standard_NC24ads_A100_v4"
  node_taints = ["sku=gpu:NoSchedule"]
  auto_scaling_enabled = true
  min_count = 0
  max_count = 2
  tags = { SkipGPUDriverInstall = "true" }
}
''')
c('d2/a.sh', 'NPL004', '''#!/bin/sh
az aks nodepool add -g r --cluster-name c -n g --node-vm-size Standard_NC24ads_A100_v4 --node-taints sku=gpu:NoSchedule --skip-gpu-driver-install --enable-cluster-autoscaler --min-count 0 --max-count 2
''')
c('d3/main.tf', 'NPL012', '''terraform {
  required_providers {
    azurerm = { source = "hashicorp/azurerm", version = "~> 4.3" }
  }
}
resource "azurerm_kubernetes_cluster_node_pool" "g" {
  name = "g"
  kubernetes_cluster_id = "x"
  vm_size = "Standard_NC24ads_A100_v4"
  node_taints = ["sku=gpu:NoSchedule"]
  enable_auto_scaling = true
  min_count = 0
  max_count = 2
}
''')
c('d4/main.tf', 'SKU018', '''resource "azurerm_kubernetes_cluster_node_pool" "g" {
  name = "g"
  kubernetes_cluster_id = "x"
  vm_size = "Standard_NC16as_T4_v3"
  gpu_instance = "MIG1g"
  node_taints = ["sku=gpu:NoSchedule"]
  auto_scaling_enabled = true
  min_count = 0
  max_count = 2
}
''')
c('d5/x.sh', 'SKU012', '''az vm create -g r -n v --image Canonical:ubuntu-24_04-lts:server:latest --size Standard_NC4as_T4_v3 --nsg-rule NONE --security-type TrustedLaunch --enable-secure-boot true
az vm extension set -g r --vm-name v -n NvidiaGpuDriverLinux --publisher Microsoft.HpcCompute
az vm auto-shutdown -g r -n v --time 1900
''', 'COST001')
c('d6/main.tf', 'SEC001', '''resource "azurerm_network_security_rule" "s" {
  name = "ssh"
  priority = 100
  direction = "Inbound"
  access = "Allow"
  protocol = "Tcp"
  source_port_range = "*"
  destination_port_range = "22"
  source_address_prefix = "0.0.0.0/0"
  destination_address_prefix = "*"
}
resource "azurerm_kubernetes_cluster_node_pool" "g" {
  name = "g"
  kubernetes_cluster_id = "x"
  vm_size = "Standard_NC24ads_A100_v4"
  node_taints = ["sku=gpu:NoSchedule"]
  auto_scaling_enabled = true
  min_count = 0
  max_count = 2
}
''')
c('e1/j.sh', 'SLM002', '''#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --time=10:00
srun torchrun --nnodes $SLURM_NNODES --nproc_per_node 8 --rdzv_endpoint $H:1 t.py
''')
c('e2/j.sh', 'SLM004', '''#!/bin/bash
#SBATCH -N 4
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH -t 10:00
srun torchrun --nnodes 2 --nproc_per_node 8 --rdzv_endpoint $H:1 t.py
''')
c('e3/j.sh', 'SLM005', '''#!/bin/bash
#SBATCH -N 4
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:4
#SBATCH -t 10:00
srun torchrun --nnodes $SLURM_NNODES --nproc_per_node 8 --rdzv_endpoint $H:1 t.py
''', 'RUN005')
c('e4/j.sh', 'SLM006', '''#!/bin/bash
#SBATCH -N 1
#SBATCH -t 10:00
module load cuda
#SBATCH --gres=gpu:8
srun python train.py
''', 'SLM001')
c('e5/j.sh', 'SLM016', '''#!/bin/bash
#SBATCH -N 1
#SBATCH --time=10:00
#SBATCH --gres=gpu:8
#SBATCH --output=$HOME/log.%j
srun python train.py
''')
c('e6/j.sh', 'SLM015', '''# Copyright someone
#!/bin/bash
#SBATCH -N 1
#SBATCH --time=10:00
#SBATCH --gres=gpu:8
srun python train.py
''')
c('f1/t.sh', 'RUN013', '''#!/bin/bash
torchrun --nproc_per_node=8 train.py \\
  --lr 1e-4 \\  # warm
  --steps 10
''')
c('f2/t.sh', 'RUN006', '''#!/bin/bash
torchrun --nproc_per_node=8 train.py --fp16 --bf16 --max-steps 10
''')
c('f3/t.sh', 'RUN007', '''#!/bin/bash
torchrun --nnodes=1 --nproc_per_node=8 pretrain_gpt.py --tensor-model-parallel-size 3 --pipeline-model-parallel-size 1 --save /c --save-interval 100 --num-attention-heads 48 --train-iters 50
''')
c('f4/t.sh', 'RUN010', '''#!/bin/bash
torchrun --nnodes=1 --nproc_per_node=8 pretrain_gpt.py --tensor-model-parallel-size 8 --pipeline-model-parallel-size 1 --save /c --save-interval 100 --num-attention-heads 20 --train-iters 50
''')
c('f5/t.sh', 'RUN008', '''#!/bin/bash
torchrun --nnodes=1 --nproc_per_node=8 pretrain_gpt.py --tensor-model-parallel-size 2 --pipeline-model-parallel-size 1 --micro-batch-size 4 --global-batch-size 100 --save /c --save-interval 100 --num-attention-heads 16 --train-iters 50
''')
c('f6/t.sh', 'RUN005', '''#!/bin/bash
export CUDA_VISIBLE_DEVICES=0,1
torchrun --nproc_per_node=4 train.py --max-steps 10
''')
c('g1/ds.json', 'DSP001', '''{"train_batch_size": 16, "fp16": {"enabled": true}, "bf16": {"enabled": true}}
''')
c('g2/ds.json', 'DSP002', '''{"train_batch_size": 30, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2}
''')
c('g3/ds.json', 'DSP003', '''{"train_batch_size": 32, "zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}}
''')
c('g4/ds.json', 'DSP004', '''{"train_batch_size": 32, "zero_optimization": {"stage": 0, "offload_optimizer": {"device": "cpu"}}}
''')
c('g5/ds.json', 'DSP010', '''{"train_batch_size": 32, "zero_optimization": {"stage": 1}, "train_batch_size": 64}
''')
c('g6/run.sh', 'DSP001', '''#!/bin/bash
cat > ds_config.json <<'EOF'
{
  "train_batch_size": 16,
  "fp16": {"enabled": true},
  "bf16": {"enabled": true}
}
EOF
deepspeed train.py --deepspeed ds_config.json --max_steps 10
''')
c('h1/docker-compose.yml', 'CMP002', '''services:
  s:
    image: vllm/vllm-openai:v0.6.3
    command: --model x --api-key ${K}
    ipc: host
    deploy:
      resources:
        reservations:
          devices:
            - driver: nvidia
              count: 1
              device_ids: ["0"]
              capabilities: [gpu]
''')
c('h2/docker-compose.yml', 'CMP003', '''services:
  s:
    image: ghcr.io/x/train:1
    deploy:
      resources:
        reservations:
          devices:
            - driver: nvidia
              count: 1
''')
c('h3/docker-compose.yml', 'CMP001', '''services:
  s:
    image: vllm/vllm-openai:v0.6.3
    command: --model x --api-key ${K}
''')
c('i1/job.yml', 'AML001', '''$schema: https://azuremlschemas.azureedge.net/latest/commandJob.schema.json
type: command
command: python train.py
environment: azureml:e:1
compute: azureml:c
distribution:
  type: pytorch
  process_count_per_instance: 8
resources:
  instance_count: 2
  instance_type: Standard_NC24ads_A100_v4
  shm_size: 64g
''')
c('j1/ci.yaml', 'INI001', '''#cloud-config
packages: nvidia-driver-550
runcmd:
  - nvidia-smi
package_update: "maybe"
''')
c('k1/d.yaml', 'SEC004', '''apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
    - name: c
      image: ghcr.io/x/y:1
      env:
        - name: HF_TOKEN
          value: hf_abcdefghijklmnopqrstuvwxyzABCDEFGH
      resources: {limits: {nvidia.com/gpu: 1}}
''')
c('k2/s.sh', 'SEC009', '''#!/bin/bash
export NVIDIA_VISIBLE_DEVICES=all
docker run --gpus all -p 8888:8888 x/y:1 jupyter lab --ip=0.0.0.0 --NotebookApp.token='' --NotebookApp.password=''
''')
c('l1/p.yaml', 'SYN002', '''apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
    - name: c
      image: ghcr.io/x/y:1
      image: ghcr.io/x/y:2
      resources: {limits: {nvidia.com/gpu: 1}}
''')
c('m1/m.json', 'NET003', '''{"$schema":"https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#","contentVersion":"1.0.0.0","resources":[
{"type":"Microsoft.ContainerService/managedClusters/agentPools","apiVersion":"2024-05-01","name":"c/g","properties":{"vmSize":"Standard_ND96isr_H100_v5","count":4,"mode":"User","enableAutoScaling":true,"minCount":0,"maxCount":4,"availabilityZones":["1","2"],"nodeTaints":["sku=gpu:NoSchedule"]}}]}
''')
c('n1/alerts.yaml', 'OBS002', '''groups:
  - name: gpu
    rules:
      - alert: Hot
        expr: DCGM_FI_DEV_GPU_TMP > 85
        for: 5m
''')
c('o1/Dockerfile', 'IMG003', '''FROM nvcr.io/nvidia/pytorch:24.05-py3
COPY model.safetensors /models/
CMD ["python", "serve.py"]
''')


def run_cases(t, cases):
    wrong = []
    for path, rules, text, allowed in cases:
        place = os.path.join(t.work, path)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "w") as file:
            file.write(text)
        done = t.call("check", path, "--format", "json", "--as-of", "2026-11-20", exit=None)
        check(done.returncode in (0, 1), done)
        found = json.loads(done.stdout)["findings"]
        all_of_them = {finding["rule"] for finding in found}
        loud = {finding["rule"] for finding in found if finding["severity"] != "info"}
        if rules - all_of_them or loud - rules - allowed:
            wrong.append(f"{path}: missed {sorted(rules - all_of_them)}, more {sorted(loud - rules - allowed)}")
    check(not wrong, "\n".join(wrong))


def test_planted_mistakes_are_found_and_nothing_else(t):
    run_cases(t, CASES)


if __name__ == "__main__":
    main(globals())

"""Mistakes planted in scripts as people write them: launchers in functions, arrays and variables, batch scripts that a loop writes and
submits, containers and other starters in between. What is expected was written down before the linter saw the script: each rule named
fires, and no error or warning beside it that is not allowed; a case without rules is right and stays silent."""

from check_planted_test import run_cases

from harness import main

CASES = []
HEAD = """#!/bin/bash
#SBATCH --job-name=pre
#SBATCH --nodes=%(nodes)s
#SBATCH --ntasks-per-node=%(tasks)s
#SBATCH --gpus-per-node=8
#SBATCH --time=08:00:00
"""


def c(path, rules, text, allowed=""):
    CASES.append((path, set(rules.split()), text, set(allowed.split())))


# ---- Functions, arrays, variables --------------------------------------------------------------------------------------------------
c('fn1/train.sbatch', 'SLM004', HEAD % {"nodes": 4, "tasks": 1} + '''set -euo pipefail
launch() {
  local args=(
    --nnodes=2            # as on the old cluster
    --nproc-per-node=8
    --rdzv-backend=c10d
    --rdzv-endpoint="$head:29500"
  )
  srun torchrun "${args[@]}" train.py --output_dir /ckpt
}
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
launch
''')
c('fn2/run.sh', 'RUN006', '''#!/usr/bin/env bash
ARGS=(--model x --bf16)
if [ -z "$DRY" ]; then
  echo "real run"
fi
ARGS+=(--fp16 --max_steps 100)
torchrun --standalone --nproc-per-node=8 train.py "${ARGS[@]}"
''')
c('fn3/run.sh', 'RUN002', '''#!/bin/bash
LAUNCHER="python -m torch.distributed.launch --nproc_per_node 8"
export OMP_NUM_THREADS=4
$LAUNCHER train.py --epochs 3
''')
c('fn4/run.sh', 'NET017', '''#!/bin/bash
cmd="torchrun --nproc_per_node=8 \\
  --nnodes=2 --node_rank=$1 --master_addr=localhost --master_port=29400 \\
  train.py --max_steps 100"
echo "$cmd"
eval "$cmd"
''')
c('fn5/create.sh', 'SKU001', '''#!/bin/bash
make_vm() {
  local size=Standard_NC6s_v2
  az vm create -g "$1" -n worker --size "$size" --nsg-rule NONE \\
    --image microsoft-dsvm:ubuntu-hpc:2204:latest
  az vm auto-shutdown -g "$1" -n worker --time 1900
}
make_vm "$RG"
''', 'COST001')
c('fn6/train.sh', 'RUN009', '''#!/bin/bash
MODEL_PARALLEL="--tensor-model-parallel-size 16 --pipeline-model-parallel-size 1"
DISTRIBUTED="--nnodes 2 --nproc_per_node 8 --rdzv_endpoint $HEAD:29500"
torchrun $DISTRIBUTED pretrain_gpt.py \\
  $MODEL_PARALLEL \\
  --num-attention-heads 64 --save /ckpt --save-interval 100 --train-iters 500
''')
c('fn7/run.sh', 'RUN012', '''#!/bin/bash
main() (
  cd /workspace || exit 1
  conda run -n t --no-capture-output env TORCH_DISTRIBUTED_DEBUG=DETAIL torchrun --nproc_per_node=8 train.py
)
main "$@"
''')

# ---- Scripts that write scripts ----------------------------------------------------------------------------------------------------
c('her1/sweep.sh', 'SLM002', '''#!/bin/bash
for model in 7b 13b; do
cat > run_$model.sbatch <<EOF
#!/bin/bash
#SBATCH --job-name=$model
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --gres=gpu:8
#SBATCH --time=04:00:00
srun accelerate launch --num_machines 2 --num_processes 16 train.py --model $model
EOF
sbatch run_$model.sbatch
done
''')
c('her2/submit.sh', 'SLM005', '''#!/bin/bash
sbatch <<'EOT'
#!/bin/bash
#SBATCH -N 2
#SBATCH --gres=gpu:4
#SBATCH --ntasks-per-node=1
#SBATCH -t 2:00:00
srun python -m torch.distributed.run --nnodes=2 --nproc_per_node=8 --rdzv_endpoint=$HEAD:29500 train.py
EOT
''')
c('her3/prepare.sh', 'DSP003', '''#!/bin/bash
tee ds_config.json > /dev/null <<'JSON'
{
  "train_micro_batch_size_per_gpu": 4,
  "zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}
}
JSON
deepspeed --num_gpus 8 train.py --deepspeed ds_config.json --max_steps 10
''')
c('her4/apply.sh', 'K8S006', '''#!/bin/bash
NAME=infer
kubectl apply -f - <<EOF
apiVersion: v1
kind: Pod
metadata:
  name: $NAME
spec:
  containers:
  - name: c
    image: ghcr.io/x/serve:1.2
    resources:
      limits:
        nvidia.com/gpu: "0.5"
EOF
''')
c('her5/submit.sh', 'NET017', '''#!/bin/bash
sbatch -N 2 --gpus-per-node=8 --ntasks-per-node=1 -t 60 \\
  --wrap="srun torchrun --nnodes=2 --nproc_per_node=8 --rdzv_endpoint=localhost:29500 train.py"
''')

# ---- Starters ----------------------------------------------------------------------------------------------------------------------
c('srun1/job.sbatch', 'SLM017', '''#!/bin/bash
#SBATCH -N 2
#SBATCH --gpus-per-node=8
#SBATCH --ntasks-per-node=8
#SBATCH -t 1:00:00
export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
srun bash -c "RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID python train.py --fp16"
''')
c('srun2/job.sbatch', 'NET014', HEAD % {"nodes": 4, "tasks": 1} + '''srun env NCCL_SOCKET_IFNAME=lo OMP_NUM_THREADS=8 \\
  torchrun --nnodes=$SLURM_NNODES --nproc_per_node=8 --rdzv_endpoint=$HEAD:29500 train.py
''')
c('srun3/job.sbatch', 'SLM008', '''#!/bin/bash
#SBATCH -N 2 --ntasks-per-node=1 --cpus-per-task=48
#SBATCH --gres=gpu:8 -t 10:00:00
srun --cpu-bind=none bash -c 'torchrun --nnodes=$SLURM_NNODES --nproc_per_node=8 --node_rank=$SLURM_NODEID \\
  --master_addr=$HEAD --master_port=29500 train.py'
''')
c('srun4/job.sbatch', 'NET017', HEAD % {"nodes": 2, "tasks": 1} + '''srun --container-image=nvcr.io/nvidia/pytorch:24.05-py3 \\
     --container-mounts=/data:/data \\
     --no-container-mount-home \\
     torchrun --nnodes=2 --nproc-per-node=8 \\
       --rdzv-backend=c10d --rdzv-endpoint=127.0.0.1:29500 \\
       train.py
''')
c('salloc/run.sh', 'NET017', '''#!/bin/bash
salloc -N 2 --gpus-per-node=8 -t 30 \\
  srun --ntasks-per-node=1 torchrun --nnodes=2 --nproc-per-node=8 --rdzv-endpoint=127.0.0.1:29500 train.py
''')
c('docker1/run.sh', 'NET017 NET008 RUN001', '''#!/bin/bash
docker run --rm --gpus all --ipc=host --network=host \\
  -e NCCL_IB_DISABLE=1 \\
  -e NCCL_DEBUG=INFO \\
  -v "$PWD":/workspace -w /workspace \\
  nvcr.io/nvidia/pytorch:24.05-py3 \\
  bash -lc "torchrun --nnodes=2 --node_rank=$RANK --nproc_per_node=8 --master_addr=127.0.0.1 --master_port=29500 train.py"
''')
c('docker2/run.sh', 'SEC008', '''#!/bin/bash
docker run -d --name llm --gpus '"device=0,1"' --shm-size 16g -p 127.0.0.1:8000:8000 \\
  --env HF_TOKEN="$HF_TOKEN" \\
  vllm/vllm-openai:v0.6.3 \\
  --model org/model --tensor-parallel-size 2 \\
  --trust-remote-code
''')
c('sing/run.sh', 'RUN001 NET008', '''#!/bin/bash
apptainer exec --nv --bind /data --env NCCL_DEBUG=INFO,NCCL_IB_DISABLE=1 train.sif \\
  torchrun --nnodes=2 --nproc_per_node=8 --node_rank="$NODE_RANK" --master_addr="$HEAD" train.py
''')
c('mpi1/run.sh', 'RUN001 NET008', '''#!/bin/bash
mpirun -np 16 --hostfile hosts --map-by ppr:8:node \\
  -x NCCL_DEBUG=INFO -x NCCL_IB_DISABLE=1 \\
  -x LD_LIBRARY_PATH -x PATH \\
  --mca btl_tcp_if_include eth0 \\
  python train.py
''')
c('hvd/run.sh', 'NET014', '''#!/bin/bash
NCCL_SOCKET_IFNAME=lo horovodrun -np 16 -H host1:8,host2:8 python train.py
''')
c('acc1/run.sh', 'RUN005', '''#!/bin/bash
CUDA_VISIBLE_DEVICES=0,1,2,3 accelerate launch \\
  --multi_gpu --num_machines 1 \\
  --num_processes 8 \\
  --mixed_precision bf16 \\
  train.py
''')
c('acc2/run.sh', 'RUN013', '''#!/bin/bash
accelerate launch --multi_gpu --num_machines 1 \\
  --num_processes 8 \\   # one per GPU
  --mixed_precision bf16 \\
  train.py
''')
c('time/run.sh', 'NET017', '''#!/bin/bash
time timeout -k 60 4h torchrun --nnodes=2 --node-rank="$1" --master-addr localhost --nproc-per-node 8 train.py |& tee log
''')
c('ssh/run.sh', 'RUN003', '''#!/bin/bash
for host in node1 node2; do
  ssh "$host" "cd /work && CUDA_LAUNCH_BLOCKING=1 torchrun --nnodes=2 --nproc_per_node=8 --rdzv_endpoint=node1:29500 train.py" &
done
wait
''')
c('nohup/serve.sh', 'RUN003 SEC008', '''#!/bin/bash
CUDA_LAUNCH_BLOCKING=1 nohup python -m vllm.entrypoints.openai.api_server \\
  --model org/model --trust-remote-code > serve.log 2>&1 &
echo $! > serve.pid
''')

# ---- Exports, secrets, directives --------------------------------------------------------------------------------------------------
c('exp1/job.sbatch', 'NET008', HEAD % {"nodes": 2, "tasks": 1} + '''export NCCL_DEBUG=WARN NCCL_IB_DISABLE=1 OMP_NUM_THREADS=8
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
srun torchrun --nnodes "$SLURM_NNODES" --nproc_per_node 8 --rdzv_endpoint "$head:29500" train.py
''')
c('exp2/run.sh', 'SEC004', '''#!/bin/bash
set -a
WANDB_API_KEY=4f1c8a90d2be7735ac61e09f8bd3247700aa1f5c
set +a
torchrun --standalone --nproc_per_node=8 train.py
''')
c('dir1/job.sbatch', 'SLM012', '''#!/bin/bash
#SBATCH -N 1 --gres=gpu:8
#SBATCH -t 1:00:00
#SBATCH --time=2:00:00
srun torchrun --standalone --nproc_per_node=8 train.py
''')
c('dir2/job.sbatch', 'SLM007', '''#!/bin/bash
#SBATCH --nodes=1
#SBATCH --gpu-per-node=8
#SBATCH --time=2:00:00
srun torchrun --standalone --nproc_per_node=8 train.py
''', 'SLM001')
c('dir3/job.sbatch', 'SLM013', '''#!/bin/bash -l
#SBATCH --nodes=1 --gres=gpu:a100:4
#SBATCH --time=2:00:00
export CUDA_VISIBLE_DEVICES=0,1
python train.py --bf16
''')
c('pbs/job.pbs', 'RUN012', '''#!/bin/bash
#PBS -l select=2:ncpus=96:ngpus=8
#PBS -l walltime=04:00:00
#PBS -q gpu
cd "$PBS_O_WORKDIR" || exit 1
export TORCH_DISTRIBUTED_DEBUG=DETAIL
mpiexec -n 16 -ppn 8 python train.py --bf16
''')

# ---- Right ones --------------------------------------------------------------------------------------------------------------------
c('ok1/train.sbatch', '', HEAD % {"nodes": 4, "tasks": 1} + '''#SBATCH --cpus-per-task=96
#SBATCH --output=%x-%j.out
set -euo pipefail
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK
export NCCL_DEBUG=WARN
nodes=($(scontrol show hostnames "$SLURM_JOB_NODELIST"))
head=${nodes[0]}
launcher=(
  torchrun
  --nnodes "$SLURM_NNODES"
  --nproc-per-node 8
  --rdzv-backend c10d
  --rdzv-endpoint "$head:29500"
)
srun --kill-on-bad-exit=1 "${launcher[@]}" train.py --bf16 --output_dir "/ckpt/$SLURM_JOB_ID"
''')
c('ok2/job.sbatch', '', HEAD % {"nodes": 2, "tasks": 8} + '''export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=29500
srun --container-image=nvcr.io/nvidia/pytorch:24.05-py3 --container-mounts="$PWD":/w --container-workdir=/w \\
  bash -c 'RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS exec python train.py --bf16'
''')
c('ok3/run.sh', '', '''#!/bin/bash
usage() {
  cat <<'EOF'
Usage: run.sh [-n NODES]
  Do not use: python -m torch.distributed.launch --nproc_per_node=8 train.py
  export NCCL_IB_DISABLE=1
EOF
  exit 1
}
[ $# -gt 0 ] || usage
# torchrun --nnodes 4 --rdzv-endpoint localhost:29500
echo "NCCL_DEBUG=INFO torchrun --nnodes 4 --rdzv-endpoint localhost:29500"
printf '%s\\n' 'CUDA_LAUNCH_BLOCKING=1 is slow'
torchrun --standalone --nproc_per_node="${GPUS:-8}" train.py
''')
c('ok4/run.sh', '', '''#!/bin/bash
if [[ ${MULTI:-0} == 1 ]]; then
  NNODES=4 MASTER=node1
else
  NNODES=1 MASTER=localhost
fi
torchrun --nnodes=$NNODES --nproc_per_node=8 --rdzv_endpoint=$MASTER:29500 train.py
deepspeed --include localhost:0,1 train.py --deepspeed ds.json
''')
c('ok5/entry.sh', '', '''#!/bin/sh
# The image's entry point: what is to run comes as arguments.
set -e
: "${NPROC:=8}"
case "$1" in
  train) shift; exec torchrun --standalone --nproc_per_node="$NPROC" train.py "$@" ;;
  serve) shift; exec vllm serve "$MODEL" --api-key "$KEY" "$@" ;;
  *) exec "$@" ;;
esac
''')


def test_planted_mistakes_in_scripts_are_found_and_nothing_else(t):
    run_cases(t, CASES)


if __name__ == "__main__":
    main(globals())

#!/usr/bin/env bash
# Trains and measures the networks of BERT-MASS on one GPU, three at a time: one small network leaves most of it idle.
#
#     python benchmarks/pack_long_data.py pack DATA carry --parts stories articles reviews words --documents 3200
#     benchmarks/long_benchmarks.sh carry out [SECONDS [PART…]]
#
# Parts are stories, words, articles, reviews and speed; without any, all. out/runs has the networks, out/*.json the measurements, out/log the
# output of all jobs, out/jobs their start and end times. Jobs are stopped after SECONDS (7200) in all. Run it again to resume: a training
# continues, and measurements that exist are not repeated.
set -u
data=$1 out=$2 end=$((SECONDS + ${3:-7200}))
shift $(($# < 3 ? $# : 3))
parts=" ${*:-stories words articles reviews speed} "
declare -A needs=([stories]="babi novels" [words]="enwiki enwiki-held" [articles]=squad [reviews]=imdb [speed]=)
for part in $parts; do
    for folder in ${needs[$part]-}; do
        [ -e "$data/$folder" ] || { echo "$0: there is no $data/$folder, which $part needs: pack it first" >&2; exit 2; }
    done
done
mkdir -p "$out/log" "$out/runs"
rm -f "$out"/*.failed
export PYTHONPATH=$PWD PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false
nvidia-cuda-mps-control -d 2> /dev/null # processes then compute side by side; without it they take turns

job() { # NAME COMMAND…: run it within the remaining time
    local name=$1 remaining_s=$((end - SECONDS))
    shift
    if [ "$remaining_s" -lt 10 ]; then
        echo "$name: no time left" >> "$out/jobs"
        return 1
    fi
    echo "$(date +%T) $name begins" >> "$out/jobs"
    timeout "$remaining_s" "$@" > "$out/log/$name.out" 2> "$out/log/$name.err"
    local code=$?
    echo "$(date +%T) $name ends: $code" >> "$out/jobs"
    return $code
}

wait_for() { # NAME: wait until it is trained; fail if its training failed
    until [ -e "$out/$1.done" ] || [ -e "$out/$1.failed" ] || [ "$SECONDS" -gt "$end" ]; do sleep 1; done
    [ -e "$out/$1.done" ]
}

train() { # NAME RECIPE OPTION…
    local name=$1
    shift
    [ -e "$out/$name.done" ] ||
        { job "$name" python -m mnemic train "$@" --start reader --device cuda --out "$out/runs/$name" && touch "$out/$name.done"; } ||
        { touch "$out/$name.failed"; return 1; }
}

measure() { # NAME COMMAND…: save the JSON that it prints
    [ -e "$out/$1.json" ] || { job "$@" && cp "$out/log/$1.out" "$out/$1.json"; }
}

train_stories() { # SEED
    train "selective-$1" bert-mass-selective --set model.encode.stack.depth=3 --data "$data/babi" --set data.background="$data/novels" \
        --set train.workers=4 --set train.validate=0 --seed "$1"
}

train_words() { # NAME OPTION…
    train "$1" bert-mass-words --set model.encode.stack.depth=3 --data "$data/enwiki" --set train.workers=4 "${@:2}"
}

train_review_classifier() { # NAME RECIPE OPTION…
    train "$1" "$2" --data "$data/imdb" --set data.length=512 --set data.overlap=0 --set train.matmul=bf16 "${@:3}"
}

is_selected() { # PART
    [[ $parts == *" $1 "* ]]
}

measure_stories() {
    wait_for selective-1 && wait_for selective-2 || return 1
    local seeds=("$out"/runs/selective-{0,1,2}) context=(python benchmarks/long_context.py)
    local options=(--batch 500 --device cuda --matmul bf16 --once --processes 8)
    measure ten-million "${context[@]}" "${seeds[@]}" --tokens 10000000 "${options[@]}"
    measure lengths "${context[@]}" "${seeds[@]}" --tokens 0 4000 32000 128000 1000000 "${options[@]}"
    measure window "${context[@]}" "$out/runs/selective-0" --tokens 0 4000 32000 --batch 100 --device cuda --matmul bf16 --processes 3 --way window
    measure retrieval "${context[@]}" "$out/runs/selective-0" --tokens 0 4000 32000 --batch 50 --device cuda --matmul bf16 --processes 3 --way retrieval
    for seed in 0 1 2; do
        measure "evidence-ablation-$seed" python benchmarks/evidence_ablation.py "$out/runs/selective-$seed" --questions 100 --device cuda
    done
}

measure_words() {
    wait_for words || return 1
    measure long-masked-lm python benchmarks/long_masked_lm.py "$out/runs/words" --beside "$out/runs/windows" \
        --folder "$data/enwiki-held" --device cuda
}

run_articles() {
    train articles bert-mass-articles --data "$data/squad" --set train.workers=4 || return 1
    measure shipped-long-qa python benchmarks/long_qa.py mnemic/weights/bert-mass --folder "$data/squad" --reader mnemic/weights/reader --device cuda
    measure long-qa python benchmarks/long_qa.py "$out/runs/articles" --reader mnemic/weights/reader --device cuda
}

run_reviews() {
    train_review_classifier memory bert-mass-classes
    train_review_classifier averaged bert-classes
    train_review_classifier first bert-classes --set data.truncation=first
    measure long-classification python benchmarks/long_classification.py memory="$out/runs/memory" windows="$out/runs/averaged" \
        first="$out/runs/first" --device cuda
}

worker_1() {
    is_selected stories && train_stories 0 && measure_stories
    is_selected articles && run_articles
}

worker_2() {
    is_selected stories && train_stories 1
    is_selected words && train_words words
}

worker_3() {
    is_selected stories && train_stories 2
    is_selected words && train_words windows --set model.segments.carry_memory=false && measure_words
    is_selected reviews && run_reviews
}

worker_1 &
worker_2 &
worker_3 &
wait
echo quit | nvidia-cuda-mps-control 2> /dev/null
is_selected speed && measure speed python benchmarks/long_speed.py --tokens 1024 32768 1048576 --at-once 8 --seconds 60 --again 5 --device cuda
echo "$(date +%T) all done" >> "$out/jobs"

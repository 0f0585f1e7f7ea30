#!/usr/bin/env bash
# Every figure of BERT-MASS on one GPU: trains, then measures, three at a time, since one small network leaves most of it idle.
#
#     python benchmarks/long_pack.py pack DATA carry --parts stories articles reviews words --documents 3200
#     benchmarks/long_all.sh carry out [SECONDS [PART…]]
#
# Parts are stories, words, articles, reviews and speed; without any, all. out/runs has the networks, out/*.json what was measured, out/log what was
# printed, out/jobs when each began and ended. What takes longer than SECONDS (7200) is stopped. Run it again to go on: a training resumes, and
# what was measured is not measured again. Data that is still on its way is waited for.
set -u
data=$1 out=$2 end=$((SECONDS + ${3:-7200}))
shift $(($# < 3 ? $# : 3))
parts=" ${*:-stories words articles reviews speed} "
mkdir -p "$out/log" "$out/runs"
export PYTHONPATH=$PWD PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false
nvidia-cuda-mps-control -d 2> /dev/null # processes then compute side by side; without it they take turns

job() { # NAME COMMAND…: within the time that is left
    local name=$1 left=$((end - SECONDS))
    shift
    if [ "$left" -lt 10 ]; then
        echo "$name: no time left" >> "$out/jobs"
        return 1
    fi
    echo "$(date +%T) $name begins" >> "$out/jobs"
    timeout "$left" "$@" > "$out/log/$name.out" 2> "$out/log/$name.err"
    local code=$?
    echo "$(date +%T) $name ends: $code" >> "$out/jobs"
    return $code
}

wait_for() { # FILE
    until [ -e "$1" ] || [ "$SECONDS" -gt "$end" ]; do sleep 1; done
}

learn() { # NAME RECIPE OPTION…
    local name=$1
    shift
    [ -e "$out/$name.done" ] ||
        { job "$name" python -m mnemic.learn "$@" --start reader --device cuda --out "$out/runs/$name" && touch "$out/$name.done"; }
}

measure() { # NAME COMMAND…: its JSON
    [ -e "$out/$1.json" ] || { job "$@" && cp "$out/log/$1.out" "$out/$1.json"; }
}

keeps() { # SEED
    learn "keeps-$1" keeps --set model.encode.stack.depth=3 --data "$data/babi" --set data.background="$data/novels" \
        --set train.workers=4 --set train.validate=0 --seed "$1"
}

words() { # NAME OPTION…
    wait_for "$data/enwiki"
    learn "$1" keeps-words --set model.encode.stack.depth=3 --data "$data/enwiki" --set train.workers=4 "${@:2}"
}

reviews() { # NAME RECIPE OPTION…
    wait_for "$data/imdb"
    learn "$1" "$2" --data "$data/imdb" --set data.length=512 --set data.overlap=0 --set train.matmul=bf16 "${@:3}"
}

asked() { # PART
    [[ $parts == *" $1 "* ]]
}

story_figures() {
    wait_for "$out/keeps-1.done"
    wait_for "$out/keeps-2.done"
    local seeds=("$out"/runs/keeps-{0,1,2}) context=(python benchmarks/long_context.py)
    local how=(--batch 500 --device cuda --matmul bf16 --once --processes 8)
    measure ten-million "${context[@]}" "${seeds[@]}" --tokens 10000000 "${how[@]}"
    measure lengths "${context[@]}" "${seeds[@]}" --tokens 0 4000 32000 128000 1000000 "${how[@]}"
    for seed in 0 1 2; do
        measure "faithful-$seed" python benchmarks/faithful.py "$out/runs/keeps-$seed" --questions 100 --device cuda
    done
}

word_figures() {
    wait_for "$out/words.done"
    measure long-words python benchmarks/long_words.py "$out/runs/words" --beside "$out/runs/windows" \
        --folder "$data/enwiki-held" --device cuda
}

articles() {
    wait_for "$data/squad"
    learn articles keeps-articles --data "$data/squad" --set train.workers=4
    measure long-articles python benchmarks/long_articles.py "$out/runs/articles" --reader mnemic/weights/reader --device cuda
}

all_reviews() {
    reviews memory bert-mass-classes
    reviews averaged bert-classes
    reviews first bert-classes --set data.truncation=first
    measure long-reviews python benchmarks/long_reviews.py memory="$out/runs/memory" windows="$out/runs/averaged" \
        first="$out/runs/first" --device cuda
}

lane_1() {
    asked stories && keeps 0 && story_figures
    asked articles && articles
}

lane_2() {
    asked stories && keeps 1
    asked words && words words
}

lane_3() {
    asked stories && keeps 2
    asked words && words windows --set model.carry.lasts=false && word_figures
    asked reviews && all_reviews
}

lane_1 &
lane_2 &
lane_3 &
wait
echo quit | nvidia-cuda-mps-control 2> /dev/null
asked speed && measure speed python benchmarks/long_speed.py --tokens 1024 32768 1048576 --at-once 8 --seconds 60 --device cuda --kinds bert-mass keeps
echo "$(date +%T) all done" >> "$out/jobs"

# An agent that works, with a word in its environment that nobody else may read.
NEIGHBOUR_WORD=$(cat word.txt) exec sleep 300

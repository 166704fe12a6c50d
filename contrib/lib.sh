# Shared by contrib/try and contrib/check; sourced, not run.

# Say what is going on, apart from the output of programs.
say() {
	printf '==> %s\n' "$*"
}

# A copy of the source tree in folder $1, without what a build left in it.
copy_source() {
	mkdir -p "$1"
	tar -C "$top" -cf - --exclude=./.git --exclude='./build*' \
		--exclude=./autom4te.cache --exclude='*.o' --exclude='*.a' \
		--exclude='.deps' --exclude='.dirstamp' --exclude='*.log' \
		--exclude='*.trs' --exclude=./Makefile --exclude=./config.status \
		--exclude=./hanaper --exclude=./hanaperd \
		--exclude=__pycache__ . | tar -C "$1" -xf -
}

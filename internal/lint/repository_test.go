package lint

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "rewrite "+namesFile)

// A rule looks at a tree and says what is wrong, one finding a string.
type rule struct {
	name  string
	check func(*tree) []string
}

var rules = []rule{
	{"libraryRequiresNothing", libraryRequiresNothing},
	{"importFloors", importFloors},
	{"sizes", sizes},
	{"documented", documented},
	{"guarded", guarded},
	{"commentWidth", commentWidth},
	{"clockReaders", clockReaders},
	{"purePackages", purePackages},
	{"sleeps", sleeps},
	{"nothingAtStart", nothingAtStart},
	{"packageNames", packageNames},
	{"typeNames", typeNames},
	{"oneWordPerIdea", oneWordPerIdea},
	{"leftoverWords", leftoverWords},
	{"thisMachine", thisMachine},
	{"namesUpToDate", namesUpToDate},
	{"linksResolve", linksResolve},
	{"architecture", architecture},
	{"cases", cases},
	{"decisions", decisions},
}

// TestRepository runs every rule on this repository.
func TestRepository(t *testing.T) {
	root := filepath.Join("..", "..")
	repo, err := load(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		text := repo.namesText()
		if err := os.WriteFile(filepath.Join(root, namesFile), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for _, f := range r.check(repo) {
				t.Error(f)
			}
		})
	}
}

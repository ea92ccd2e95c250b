module example.com/forebay

go 1.26.0

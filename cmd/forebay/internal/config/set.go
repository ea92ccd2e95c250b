package config

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"
)

// set gives a key another value, or the first one. Its place is that of the flag: none.
func (d *decoder) set(root *yaml.Node, set string) {
	path, text, ok := strings.Cut(set, "=")
	var doc yaml.Node
	if ok {
		ok = path != "" && yaml.Unmarshal([]byte(text), &doc) == nil && len(doc.Content) == 1
	}
	if !ok {
		d.wrongAt(Pos{}, fmt.Sprintf("--set %s is no key with a value", shorten(set)), "write --set gates.orders.max_in_flight=24")
		return
	}
	n := root
	keys := strings.Split(path, ".")
	for i, k := range keys {
		if n.Kind != yaml.MappingNode {
			d.wrongAt(Pos{}, fmt.Sprintf("--set %s: %s is no mapping", shorten(set), strings.Join(keys[:i], ".")), "give the whole of it a value")
			return
		}
		n = entryOf(n, k)
	}
	value := doc.Content[0]
	if value.Kind == yaml.ScalarNode && value.Tag == "" {
		value.Tag = value.ShortTag()
	}
	*n = *value
	unplaced(n)
}

// entryOf returns the value of a key, which is made if it is not there.
func entryOf(n *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	value := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name}, value)
	return value
}

// unplaced takes the places from what stands in no file.
func unplaced(n *yaml.Node) {
	n.Line, n.Column = 0, 0
	for _, c := range n.Content {
		unplaced(c)
	}
}

package simulate

// heap holds entries, the least key first and of equal keys the lower order. Every entry
// knows its place, so it can be moved and taken out.
type heap []*entry

// entry is an event of the agenda or a call that is served.
type entry struct {
	key   float64
	order uint64
	place int // in its heap; -1: in none
	fire  func()
	call  *call
}

func (h heap) first() *entry { return h[0] }

func (h *heap) push(e *entry) {
	e.place = len(*h)
	*h = append(*h, e)
	h.up(e.place)
}

func (h *heap) remove(e *entry) {
	i, last := e.place, len(*h)-1
	if i < last {
		h.swap(i, last)
	}
	(*h)[last] = nil
	*h = (*h)[:last]
	e.place = -1
	if i < last {
		h.up(i)
		h.down(i)
	}
}

// move gives an entry another key.
func (h *heap) move(e *entry, key float64) {
	e.key = key
	h.up(e.place)
	h.down(e.place)
}

func (h heap) less(i, j int) bool {
	d, e := h[i], h[j]
	return d.key < e.key || d.key == e.key && d.order < e.order
}

func (h heap) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

func (h heap) up(i int) {
	for i > 0 && h.less(i, (i-1)/2) {
		h.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (h heap) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if h.less(child, least) {
				least = child
			}
		}
		if least == i {
			return
		}
		h.swap(i, least)
		i = least
	}
}

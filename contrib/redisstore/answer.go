package redisstore

import (
	"errors"

	"github.com/redis/rueidis"

	"example.com/forebay/internal/redisledger"
)

// build makes a command that goes to the node of the key, wherever that stands in it.
// It is not marked as a mere read, so rueidis never repeats it.
func build(b interface{ B() rueidis.Builder }, key string, command []string) rueidis.Completed {
	return b.B().Arbitrary(command...).Build().SetSlot(key)
}

// value returns an answer as the core takes it.
func value(r rueidis.RedisResult) (any, error) {
	m, err := r.ToMessage()
	if err != nil && !rueidis.IsRedisNil(err) {
		return nil, refused(err)
	}
	return plain(m)
}

// plain returns a message as a string, an int64, nil, or a []any of them, in which the
// names and values of a map stand in turn.
func plain(m rueidis.RedisMessage) (any, error) {
	switch {
	case m.IsNil():
		return nil, nil
	case m.IsInt64():
		return m.ToInt64()
	case m.IsMap():
		fields, err := m.ToMap()
		all := make([]any, 0, 2*len(fields))
		for name, v := range fields {
			p, e := plain(v)
			err = errors.Join(err, e)
			all = append(all, name, p)
		}
		return all, err
	case m.IsArray():
		list, err := m.ToArray()
		all := make([]any, len(list))
		for i, v := range list {
			p, e := plain(v)
			err = errors.Join(err, e)
			all[i] = p
		}
		return all, err
	}
	return m.ToString()
}

// refused makes an error that a server answered what it is for the core.
func refused(err error) error {
	var r *rueidis.RedisError
	if errors.As(err, &r) && !r.IsNil() {
		return redisledger.Refused(r.Error())
	}
	return err
}

return redis.error_reply('not yet')

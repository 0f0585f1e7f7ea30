// Package alarm sends warnings by text message.
package alarm

import "time"

// QuietPeriod is the time between two warnings of the same station.
const QuietPeriod = 25 * time.Minute

// Recipients are warned in this order.
var Recipients = []string{"control room", "fire brigade", "dyke association"}

// ShouldWarn reports whether a level in centimetres is above the alarm level.
func ShouldWarn(level, alarmLevel int) bool {
	return level > alarmLevel
}

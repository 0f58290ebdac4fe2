package config_test

import (
	"fmt"
	"os"

	"github.com/plimsoll-dev/plimsoll/hub/config"
)

// A file sets some keys, and the environment comes after it. What is wrong is reported with its place and the rule.
func ExampleLoad() {
	file, err := os.CreateTemp("", "plimsoll-*.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.Remove(file.Name())
	if _, err := file.WriteString("controller:\n  workers: 8\n"); err != nil {
		fmt.Println(err)
		return
	}
	c, err := config.Load(file.Name(), []string{"PLIMSOLL_CONTROLLER_RESYNCPERIOD=1m"})
	fmt.Println(c.Controller.Workers, c.Controller.ResyncPeriod, err)

	_, err = config.Load("", []string{"PLIMSOLL_CONTROLLER_WORKERS=0"})
	fmt.Println(err)
	// Output:
	// 8 1m0s <nil>
	// PLIMSOLL_CONTROLLER_WORKERS: controller.workers: 0: must be from 1 to 1000
}

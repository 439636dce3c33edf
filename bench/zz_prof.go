package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"
)

func init() {
	measurements = append(measurements, measurement{"prof", func(ctx context.Context, o settings) error {
		s, err := newSite(ctx, o.caddy, siteConfig{})
		if err != nil {
			return err
		}
		defer s.close()
		open, _ := strconv.Atoi(os.Getenv("OPEN"))
		n, _ := strconv.Atoi(os.Getenv("EVENTS"))
		pace, _ := strconv.Atoi(os.Getenv("PACE"))
		work := agentWork{open, n, pace}
		src := aipStream(s, plain)
		if _, err := s.flow(ctx, src, work); err != nil {
			return err
		}
		done := make(chan error, 1)
		stop := make(chan bool)
		go func() {
			for {
				r, err := s.flow(ctx, src, work)
				if err != nil {
					done <- err
					return
				}
				fmt.Println("rate", r.rate, "cpu", r.cpu)
				select {
				case <-stop:
					done <- nil
					return
				default:
				}
			}
		}()
		time.Sleep(300 * time.Millisecond)
		err = s.writeProfile(ctx, o.profile, 5)
		close(stop)
		if e := <-done; e != nil {
			return e
		}
		return err
	}})
}

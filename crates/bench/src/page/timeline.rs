//! Something over time, with a moment that is marked, as SVG.

use super::plot::{Axis, COLOURS, Drawn, Svg, mesh, svg};
use plotters::chart::ChartBuilder;
use plotters::prelude::{LineSeries, PathElement, Text};
use plotters::style::Color;
use plotters::style::colors::{BLACK, WHITE};

/// Figures over time, both from 0 on.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Timeline {
    /// What it shows.
    pub title: String,
    /// Time from left to right.
    pub x: Axis,
    /// From below.
    pub y: Axis,
    /// When, and how much.
    pub places: Vec<(f64, f64)>,
    /// When something happened, and what.
    pub mark: Option<(f64, String)>,
    /// Which colour its line has, as a place among those of all plots.
    pub colour: usize,
}

impl Timeline {
    /// As SVG.
    pub fn svg(&self) -> String {
        svg(|area| self.draw(area))
    }

    fn draw(&self, area: &Svg<'_>) -> Drawn {
        area.fill(&WHITE)?;
        let most = |of: fn(&(f64, f64)) -> f64| self.places.iter().map(of).fold(0.0, f64::max);
        // Axes of no length have no figures.
        let right = most(|place| place.0).max(1e-3);
        let top = most(|place| place.1).max(1.0) * 1.1;
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 16))
            .margin(8)
            .margin_right(20)
            .x_label_area_size(36)
            .y_label_area_size(64)
            .build_cartesian_2d(0.0..right, 0.0..top)?;
        mesh(&mut chart, (&self.x, &self.y))?;
        let colour = COLOURS[self.colour % COLOURS.len()];
        let line = LineSeries::new(self.places.iter().copied(), colour.stroke_width(1));
        chart.draw_series(line)?;
        if let Some((at, what)) = &self.mark {
            let line = PathElement::new([(*at, 0.0), (*at, top)], BLACK.stroke_width(1));
            chart.draw_series([line])?;
            let text = Text::new(format!(" {what}"), (*at, top * 0.98), ("sans-serif", 13));
            chart.draw_series([text])?;
        }
        area.present()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeline_shows_its_line_and_its_mark() {
        let empty = Timeline::default().svg();
        assert!(empty.starts_with("<svg") && !empty.contains("NaN"));
        let timeline = Timeline {
            title: "what goes on".into(),
            places: vec![(0.0, 3.0), (0.5, 0.0), (1.0, 2.0)],
            mark: Some((0.5, "killed".into())),
            ..Timeline::default()
        };
        let svg = timeline.svg();
        assert!(svg.contains("killed") && svg.contains("what goes on"));
        let line = svg.lines().find(|line| line.contains("#0072B2")).unwrap();
        let points = line.split("points=\"").nth(1).unwrap();
        let points = points.split('"').next().unwrap();
        assert_eq!(points.split_whitespace().count(), 3, "{line}");
    }
}
